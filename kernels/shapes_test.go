package kernels

import (
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShapesOfAllOperations: no operation reaches the backend behind Shapes. Here that is nil.
func TestShapesOfAllOperations(t *testing.T) {
	memory := []string{
		"Name", "Bytes", "Alloc", "Free", "UploadF32", "UploadU32", "UploadHalf", "DownloadF32", "DownloadU32",
		"FetchF32", "FetchU32", "Mark", "Behind", "TakesHalf", "Host",
	}
	s, operations := reflect.ValueOf(Shapes{}), 0
	for i := range s.NumMethod() {
		name := s.Type().Method(i).Name
		if slices.Contains(memory, name) {
			continue
		}
		operations++
		var args []reflect.Value
		method := s.Method(i)
		for a := range method.Type().NumIn() {
			args = append(args, reflect.Zero(method.Type().In(a)))
		}
		func() {
			defer func() {
				if err, ok := recover().(runtime.Error); ok {
					require.NoError(t, err, name)
				}
			}()
			if method.Type().IsVariadic() {
				method.CallSlice(args)
			} else {
				method.Call(args)
			}
		}()
	}
	require.Greater(t, operations, 60)
}

// TestSizing: a dry backend computes nothing, and refuses shapes that do not fit.
func TestSizing(t *testing.T) {
	z := NewSizing(NewCPU(CPUOptions{Threads: 1}))
	x := NewTensor(z, F32, 2, 3)
	defer FreeTensors(z, x)
	value := func() float32 {
		got := make([]float32, 6)
		z.DownloadF32(got, x)
		return got[5]
	}
	z.Fill(x, 2)
	z.SetDry(true)
	require.True(t, z.Dry())
	z.Fill(x, 3)
	require.EqualValues(t, 2, value())
	require.Panics(t, func() { z.Add(x, x.Slice(0, 1)) })
	z.SetDry(false)
	require.False(t, z.Dry())
	z.Fill(x, 3)
	require.EqualValues(t, 3, value())
}
