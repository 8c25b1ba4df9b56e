// Package deploy has files to start workers on many machines.
package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

// TestMPIJob: the operator and Kubernetes know all fields of the job, and what it says twice it
// says alike.
func TestMPIJob(t *testing.T) {
	text := read(t, "mpijob.yaml")
	var job v2beta1.MPIJob
	require.NoError(t, yaml.UnmarshalStrict(text, &job))
	require.Error(t, yaml.UnmarshalStrict(bytes.Replace(text, []byte("slotsPerWorker"), []byte("slotPerWorker"), 1), &job))
	require.Error(t, yaml.UnmarshalStrict(bytes.Replace(text, []byte("tcpSocket"), []byte("tcpSockets"), 1), new(v2beta1.MPIJob)))

	require.NoError(t, yaml.UnmarshalStrict(text, &job))
	require.Equal(t, "kubeflow.org/v2beta1", job.APIVersion)
	specs := job.Spec.MPIReplicaSpecs
	launcher, workers := specs[v2beta1.MPIReplicaTypeLauncher], specs[v2beta1.MPIReplicaTypeWorker]
	command := launcher.Template.Spec.Containers[0].Command
	require.Equal(t, []string{"mpirun", "-n", strconv.Itoa(int(*workers.Replicas)), "gnnstore-mpi", "train", "/parts"}, command[:6])
	require.Contains(t, command, "--resume")

	worker := workers.Template.Spec
	memory := worker.Containers[0].Resources.Limits.Memory().Value()
	asked, err := strconv.ParseInt(strings.TrimSuffix(command[slices.Index(command, "--memory")+1], "GiB"), 10, 64)
	require.NoError(t, err)
	require.Less(t, asked<<30, memory, "the process takes more than --memory")
	mounted := func(path string) bool {
		for _, m := range worker.Containers[0].VolumeMounts {
			if m.MountPath == path {
				return true
			}
		}
		return false
	}
	require.True(t, mounted("/parts") && mounted("/shared"))

	docker := string(read(t, "Dockerfile"))
	require.Contains(t, docker, "useradd --create-home --uid "+strconv.FormatInt(*worker.SecurityContext.RunAsUser, 10)+" mpi ")
	require.Equal(t, "/home/mpi/.ssh", job.Spec.SSHAuthMountPath)
	require.Contains(t, docker, "HostKey "+job.Spec.SSHAuthMountPath+"/id_rsa")
	require.Contains(t, docker, "Port "+strconv.Itoa(int(worker.Containers[0].Ports[0].ContainerPort)))
	require.Contains(t, docker, worker.Containers[0].Command[3])
}

// TestSlurm: the script parses, copies a part once, and starts a worker for each task.
func TestSlurm(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin", "shared/part-1.gnn", "local/part-1.gnn.copy"} { // .copy: interrupted
		require.NoError(t, os.MkdirAll(dir+"/"+name, 0o777))
	}
	require.NoError(t, os.WriteFile(dir+"/shared/part-1.gnn/manifest.json", nil, 0o666))
	// srun as task 1 would have it: its options, and then the command.
	srun := "#!/bin/sh\necho \"srun $*\" >> " + dir + "/calls\nshift\nSLURM_PROCID=1 exec \"$@\"\n"
	train := "#!/bin/sh\necho \"train $*\" >> " + dir + "/calls\n"
	for name, text := range map[string]string{"srun": srun, "gnnstore-mpi": train} {
		require.NoError(t, os.WriteFile(dir+"/bin/"+name, []byte(text), 0o700))
	}
	for range 2 { // the second time the part is there
		c := exec.Command("sh", "slurm.sh")
		c.Env = append(os.Environ(), "PATH="+dir+"/bin:"+os.Getenv("PATH"),
			"PARTS="+dir+"/local", "SHARED="+dir+"/shared", "RUN="+dir+"/run")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		require.FileExists(t, dir+"/local/part-1.gnn/manifest.json")
		require.NoDirExists(t, dir+"/local/part-1.gnn.copy")
		require.NoDirExists(t, dir+"/local/part-1.gnn/part-1.gnn")
	}
	calls := string(read(t, dir+"/calls"))
	require.Equal(t, 2, strings.Count(calls, "train train "+dir+"/local --run "+dir+"/run --resume"))
	require.Equal(t, 2, strings.Count(calls, "srun --mpi=pmix gnnstore-mpi"))
}

// TestHosts: lines of the hostfile are as mpirun reads them.
func TestHosts(t *testing.T) {
	for line := range strings.Lines(string(read(t, "hosts"))) {
		require.Regexp(t, regexp.MustCompile(`^(#.*|[a-z0-9.-]+ slots=[0-9]+)\n$`), line)
	}
}

// TestCompose: the services fit the schema of Compose, and each file that they mount is here.
func TestCompose(t *testing.T) {
	load := func(text []byte) (*types.Project, error) {
		details := types.ConfigDetails{
			WorkingDir: "monitor", ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}},
			Environment: types.Mapping{"DATA": "/data", "RUNS": "/runs"},
		}
		return loader.LoadWithContext(t.Context(), details)
	}
	text := read(t, "monitor/compose.yaml")
	project, err := load(text)
	require.NoError(t, err)
	_, err = load(bytes.Replace(text, []byte("stop_grace_period"), []byte("stop_grace_time"), 1))
	require.Error(t, err)
	for _, service := range project.Services {
		for _, v := range service.Volumes {
			if inside := strings.Contains(v.Source, "monitor/"); inside {
				require.FileExists(t, filepath.Join("monitor", v.Source[strings.LastIndex(v.Source, "monitor/")+len("monitor/"):]))
			}
		}
	}
	train := project.Services["train"]
	memory, err := strconv.ParseInt(strings.TrimSuffix(train.Command[slices.Index(train.Command, "--memory")+1], "GiB"), 10, 64)
	require.NoError(t, err)
	require.Less(t, memory<<30, int64(train.MemLimit), "the process takes more than --memory")
	_, port, _ := strings.Cut(train.Command[slices.Index(train.Command, "--listen")+1], ":")
	require.Contains(t, string(read(t, "monitor/prometheus.yml")), `"train:`+port+`"`)
	require.Contains(t, string(read(t, "image/Dockerfile")), "USER 65532:")
}
