package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
)

// TestDoctor: every finding has its three texts, and the keys that programs rely on.
func TestDoctor(t *testing.T) {
	code, stdout, stderr := gnnstore(t, "doctor", "--json")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	var all map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	keys := map[string][]string{
		"build": {}, "gpu": {}, "kernels": {}, "bf16": {}, "threads": {"processors", "threads"}, "disk_engine": {"engine"},
		"memory":        {"machine_bytes", "cgroup_bytes", "available_bytes", "budget_bytes"},
		"locked_memory": {"limit"}, "address_space": {"limit"}, "open_files": {"limit"}, "huge_pages": {}, "temporary_files": {"path", "free_bytes"},
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(keys)), slices.Collect(maps.Keys(all)))
	for name, more := range keys {
		if name != "build" {
			more = append(more, "has", "chosen", "why")
		}
		for _, key := range more {
			require.Contains(t, all[name], key, name)
			require.NotEqual(t, "", all[name][key], "%s, %s", name, key)
		}
	}

	code, stdout, _ = gnnstore(t, "doctor")
	require.Zero(t, code)
	for name, f := range all {
		if name == "memory" || name == "temporary_files" {
			continue // their free bytes change from call to call
		}
		if has, ok := f["has"].(string); ok && len(has) < 80 {
			require.Contains(t, stdout, "  there is  "+has+"\n")
		}
	}
}

// TestDoctorBF16: where products in bf16 are slower, doctor says so and why.
func TestDoctorBF16(t *testing.T) {
	require.Equal(t, finding{"sets [amx avx512bf16 portable]", "f32, unless --matmul bf16 asks for amx", "bf16 is faster and rounds what is multiplied"},
		bf16Finding(versionInfo{BF16: kernels.AMX, BF16Sets: []kernels.Set{kernels.AMX, kernels.AVX512BF16, kernels.Portable}}))
	v := versionInfo{BF16Sets: []kernels.Set{kernels.Portable}, NoAMX: "the processor has no AMX and no AVX512_BF16"}
	require.Equal(t, finding{"sets [portable]: the processor has no AMX and no AVX512_BF16", "f32",
		"bf16 is slower here; --matmul bf16 --kernels portable computes it all the same"}, bf16Finding(v))
	require.Contains(t, v.String(), ", for bf16 kernels none of [portable]: the processor has no AMX and no AVX512_BF16")
}

// TestDoctorGPU: doctor chooses a GPU that can be used. Else it chooses the CPU and gives the
// reason.
func TestDoctorGPU(t *testing.T) {
	var f findings
	f.gpu(kernels.DeviceInfo{}, false, nil)
	require.Equal(t, "this build has no CUDA; archive gnnstore-cuda has it", f.GPU.Has)
	require.Equal(t, "cpu", f.GPU.Chosen)
	require.Nil(t, f.GPU.Device)

	f = findings{}
	f.gpu(kernels.DeviceInfo{}, true, errors.Join(errors.New("no NVIDIA driver"), errors.New("install it")))
	require.Equal(t, finding{"none that can be used: no NVIDIA driver; install it", "cpu", "there is no GPU to use"}, f.GPU.finding)

	f = findings{}
	info := kernels.DeviceInfo{
		Name: "NVIDIA H100", Arch: "sm_90", Devices: 2, CUDA: "12.9", Driver: "570.86.15", Provider: "purego", Total: 80 << 30, Free: 79 << 30,
		Products: "kernels of gnnstore",
	}
	f.gpu(info, true, nil)
	require.Equal(t, "NVIDIA H100 (sm_90), 79 GiB free of 80 GiB, the first of 2; CUDA 12.9, driver 570.86.15, called by purego; "+
		"matrix products by kernels of gnnstore", f.GPU.Has)
	require.Equal(t, "cuda", f.GPU.Chosen)
	require.Contains(t, f.GPU.Why, "--device cpu computes on the CPU")
	require.Equal(t, &info, f.GPU.Device)

	for want, r := range map[string]kernels.GatherRates{
		"the host gathers rows for a copy to the GPU (8 GiB/s by a copy, 6 GiB/s read over the bus): because": {
			Staged: 8 << 30, Read: 6 << 30, Why: "because"},
		"the GPU reads rows of the host itself, where the host keeps all that are not on the GPU (8 GiB/s by a copy, 16 GiB/s read over the bus): because": {
			Staged: 8 << 30, Read: 16 << 30, Reads: true, Why: "because"},
		"the host gathers rows for a copy to the GPU (8 GiB/s by a copy): it cannot read": {Staged: 8 << 30, Why: "it cannot read"},
		"the host gathers rows for a copy to the GPU: not measured":                       {Why: "not measured"},
	} {
		f, info := findings{}, info
		info.Gather = &r
		f.gpu(info, true, nil)
		require.Contains(t, f.GPU.Has, "; matrix products by kernels of gnnstore; "+want)
	}
}

// TestDoctorDisk: the engine is tried in a directory, nothing is left there, and a directory that
// cannot be written to is no failure.
func TestDoctorDisk(t *testing.T) {
	dir := t.TempDir()
	kind, why, err := engineIn(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, []disk.Kind{disk.Uring, disk.Pread, disk.Buffered}, kind)
	require.NotContains(t, why, dir)
	require.Equal(t, kind != disk.Uring, why != "" && kind != disk.Uring, why)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	var f findings
	f.TempDir.Path = filepath.Join(dir, "none")
	f.disk(t.Context())
	require.Contains(t, f.Disk.Has, "not tried: ")
	require.Contains(t, f.Disk.Has, "no such file or directory")
	require.NotEmpty(t, f.Disk.Chosen)

	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	code, _, stderr := gnnstore(t, "doctor")
	require.Zero(t, code, stderr)
}
