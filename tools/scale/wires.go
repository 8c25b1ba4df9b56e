//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/run"
)

// machines is the number of machines that the part coop pretends to have, each with a part.
const machines = 4

// coop trains on parts and cooperatively by Open MPI, with machines that are network, host name and
// mount namespaces on this one: each sees only its own part, and has a wire of 10, 0.1 or 1 Gbit/s.
// One process is killed, and two go on. It needs root, Open MPI, and iproute2.
func (b *bench) coop(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("it makes network namespaces: start it as root")
	}
	mpi, err := cli.BuildTagged(ctx, b.dir, "mpi")
	if err != nil {
		return err
	}
	whole, parts := b.path("papers.gnn"), b.path("parts")
	if err := b.binary.Run(ctx, "generate", "papers100m", whole, "--scale", fmt.Sprint(0.09*b.scale)); err != nil {
		return err
	}
	var divided struct {
		CrossEdges float64 `json:"cross_edges"`
		Seconds    float64 `json:"seconds"`
	}
	if err := b.binary.JSON(ctx, &divided, "partition", whole, parts, "--parts", strconv.Itoa(machines)); err != nil {
		return err
	}
	fmt.Fprintf(b.w, "divided in %.1f s: %.1f %% of the edges cross\n", divided.Seconds, 100*divided.CrossEdges)
	w := &wires{bench: b, mpi: string(mpi), parts: parts}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(ctx); err != nil {
		return err
	}
	if err := w.disks(machines); err != nil {
		return err
	}
	if err := w.exchanges(ctx); err != nil {
		return err
	}
	args := []string{
		"--fanout", "10,10", "--hidden", "64", "--batch", "4000", "--epochs", "2", "--checkpoint-every", "5",
		"--memory", "2GiB", "--eval", "sampled", "--eval-nodes", "4000",
	}
	if err := os.Rename(whole, whole+".away"); err != nil {
		return err
	}
	for _, way := range []string{run.Cooperative, run.ByParts} {
		if err := w.trains(ctx, way, append([]string{"--parallel", way}, args...)); err != nil {
			return err
		}
	}
	return w.predicts(ctx, b.path("killed-"+run.ByParts), whole)
}

// trains trains on the parts in one way: in one process, on machines with wires of several rates,
// and in a run that loses a process and is resumed.
func (w *wires) trains(ctx context.Context, way string, args []string) error {
	var want run.Result
	local := append([]string{"train", w.parts, "--run", w.path("local-" + way)}, args...)
	local = append(local, "--memory", "8GiB") // for four workers
	if err := w.binary.JSON(ctx, &want, local...); err != nil {
		return err
	}
	fmt.Fprintf(w.w, "%s, four workers in one process: epochs of %.1f and %.1f s, weights %s\n",
		way, want.Epochs[0].Seconds, want.Epochs[1].Seconds, want.ParamsXXH3)
	if err := w.disks(machines); err != nil {
		return err
	}
	for _, gbit := range []float64{10, 0.1, 1} { // the last one stays
		if err := w.rate(ctx, gbit); err != nil {
			return err
		}
		dir := w.path(fmt.Sprintf("%s-%g", way, gbit))
		if err := w.undisturbed(ctx, gbit, &want, append([]string{"--run", dir}, args...)); err != nil {
			return err
		}
	}
	return w.killed(ctx, &want, append([]string{"--run", w.path("killed-" + way)}, args...))
}

// wires are machines with a part each, on one bridge.
type wires struct {
	*bench
	mpi, parts string
	name       string // prefix of the namespaces
	agent      string // reaches a machine, as ssh would
}

// open makes the namespaces, the wires and the agent.
func (w *wires) open(ctx context.Context) error {
	w.name = fmt.Sprintf("gs%d", os.Getpid())
	bridge := w.name + "b"
	commands := []string{"ip netns add " + bridge, "ip -n " + bridge + " link add br0 type bridge", "ip -n " + bridge + " link set br0 up"}
	for i := range machines {
		ns, end := w.machine(i), fmt.Sprintf("e%d", i)
		commands = append(commands,
			"ip netns add "+ns,
			"ip -n "+bridge+" link add "+end+" type veth peer name eth0 netns "+ns,
			"ip -n "+bridge+" link set "+end+" master br0 up",
			fmt.Sprintf("ip -n %s addr add 10.77.0.%d/24 dev eth0", ns, i+1),
			"ip -n "+ns+" link set eth0 up", "ip -n "+ns+" link set lo up",
		)
	}
	if err := shell(ctx, commands...); err != nil {
		return err
	}
	w.agent = w.path("agent")
	// $1 is the machine. Its directory of parts lies over the parts.
	script := fmt.Sprintf(`#!/bin/sh
host=$1; shift
exec ip netns exec $host unshare --uts --mount sh -c "hostname $host; mount --bind %s/$host %s; $*"
`, w.path("disks"), w.parts)
	return os.WriteFile(w.agent, []byte(script), 0o700)
}

// shell runs commands until one fails.
func shell(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if out, err := exec.CommandContext(ctx, "sh", "-c", c).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c, err, out)
		}
	}
	return nil
}

// rate bounds what each machine sends and gets, in Gbit/s.
func (w *wires) rate(ctx context.Context, gbit float64) error {
	var commands []string
	for i := range machines {
		for _, end := range []string{"tc -n " + w.machine(i) + " qdisc replace dev eth0", fmt.Sprintf("tc -n %sb qdisc replace dev e%d", w.name, i)} {
			commands = append(commands, fmt.Sprintf("%s root tbf rate %dkbit burst %dkb latency 50ms", end, int(gbit*1e6), max(64, int(256*gbit))))
		}
	}
	return shell(ctx, commands...)
}

// exchanges measures how much of wires messages of some sizes use, and what waiting takes.
func (w *wires) exchanges(ctx context.Context) error {
	program := w.path("exchange")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "mpi", "-o", program, "./tools/scale/exchange")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./tools/scale/exchange: %w\n%s", err, out)
	}
	fmt.Fprintf(w.w, "\n| machines | Gbit/s | MiB a message | of the wire | cores of a process that waits |\n|---|---|---|---|---|\n")
	for _, count := range []int{2, machines} {
		for _, gbit := range []float64{10, 1, 0.1} {
			if err := w.rate(ctx, gbit); err != nil {
				return err
			}
			for _, mib := range []float64{0.0625, 1, 8} {
				times := max(2, min(200, int(gbit*250/mib/float64(count-1))))
				var r struct {
					Sent    float64 `json:"sent_per_second"`
					Waiting float64 `json:"cores_waiting"`
				}
				if err := result(w.program(ctx, program, count, fmt.Sprint(mib), fmt.Sprint(times), "1"), &r); err != nil {
					return err
				}
				fmt.Fprintf(w.w, "| %d | %g | %g | %.0f %% | %.2f |\n", count, gbit, mib, 100*r.Sent*8/(gbit*1e9), r.Waiting)
			}
		}
	}
	fmt.Fprintln(w.w)
	return nil
}

func (w *wires) machine(i int) string { return fmt.Sprintf("%s-%d", w.name, i) }

// close ends all that runs in the namespaces, and removes them.
func (w *wires) close() (err error) {
	for i := range machines + 1 {
		ns := w.name + "b"
		if i < machines {
			ns = w.machine(i)
		}
		pids, _ := exec.Command("ip", "netns", "pids", ns).Output() // none where it is not there
		for _, pid := range strings.Fields(string(pids)) {
			if n, perr := strconv.Atoi(pid); perr == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		if out, derr := exec.Command("ip", "netns", "del", ns).CombinedOutput(); derr != nil {
			err = errors.Join(err, fmt.Errorf("ip netns del %s: %s", ns, bytes.TrimSpace(out)))
		}
	}
	return err
}

// disks gives each of so many machines the parts of its workers.
func (w *wires) disks(count int) error {
	if err := os.RemoveAll(w.path("disks")); err != nil {
		return err
	}
	for q := range machines {
		from, to := store.PartPath(w.parts, q), store.PartPath(filepath.Join(w.path("disks"), w.machine(q*count/machines)), q)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		// Links to the same files: the parts themselves are hidden there.
		if out, err := exec.Command("cp", "-al", from, to).CombinedOutput(); err != nil {
			return fmt.Errorf("cp -al %s %s: %s", from, to, out)
		}
	}
	return nil
}

// command is gnnstore-mpi by a process on each of so many machines, not started.
func (w *wires) command(ctx context.Context, count int, args ...string) *exec.Cmd {
	return w.program(ctx, w.mpi, count, args...)
}

// program is command for any program.
func (w *wires) program(ctx context.Context, program string, count int, args ...string) *exec.Cmd {
	var hosts []string
	for i := range count {
		hosts = append(hosts, w.machine(i))
	}
	mpirun := strings.Join(append([]string{
		"mpirun.openmpi", "--allow-run-as-root", "-n", strconv.Itoa(count), "--host", strings.Join(hosts, ","), "--map-by", "node",
		"--mca", "plm_rsh_agent", w.agent, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24", program,
	}, args...), " ")
	c := exec.CommandContext(ctx, w.agent, w.machine(0), "exec "+mpirun)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	return c
}

// result runs a command, and reads the object that it prints.
func result(c *exec.Cmd, into any) error {
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, cli.LastLine(stderr.Bytes()))
	}
	return json.Unmarshal(out.Bytes(), into)
}

// crossed returns the bytes that machines have sent, headers of packets included.
func (w *wires) crossed() (sum int64, err error) {
	for i := range machines {
		out, err := exec.Command("ip", "netns", "exec", w.machine(i), "cat", "/sys/class/net/eth0/statistics/tx_bytes").Output()
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// undisturbed trains in four processes, which end with the weights of want.
func (w *wires) undisturbed(ctx context.Context, gbit float64, want *run.Result, args []string) error {
	before, err := w.crossed()
	if err != nil {
		return err
	}
	var r run.Result
	began := time.Now()
	if err := result(w.command(ctx, machines, append([]string{"train", w.parts, "--json"}, args...)...), &r); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := w.crossed()
	if err != nil {
		return err
	}
	sent := int64(0)
	for _, n := range r.Workers.SentBytes {
		sent += n
	}
	fmt.Fprintf(w.w, "four machines, %g Gbit/s: epochs of %.1f and %.1f s in %.1f s, %.2f GB in messages, %.2f GB on the wires (%.3f times), peak %d MiB, weights %s\n",
		gbit, r.Epochs[0].Seconds, r.Epochs[1].Seconds, took.Seconds(), float64(sent)/1e9, float64(after-before)/1e9,
		float64(after-before)/float64(sent), r.PeakRSSBytes>>20, r.ParamsXXH3)
	return w.same(&r, want)
}

func (w *wires) same(r, want *run.Result) error {
	if r.ParamsXXH3 != want.ParamsXXH3 || r.ParamsXXH3 == "" {
		return fmt.Errorf("weights %s, want %s", r.ParamsXXH3, want.ParamsXXH3)
	}
	return nil
}

// killed kills a process once there is a checkpoint. Two machines, with two parts each, go on.
func (w *wires) killed(ctx context.Context, want *run.Result, args []string) error {
	dir := args[1]
	c := w.command(ctx, machines, append([]string{"train", w.parts, "--json"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for killed := false; ; {
		select {
		case err := <-ended:
			if !killed || err == nil {
				return fmt.Errorf("it ended with %v before a process was killed: %s", err, cli.LastLine(stderr.Bytes()))
			}
		case <-time.After(50 * time.Millisecond):
			there, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*.safetensors"))
			if len(there) == 0 || killed {
				continue
			}
			pid, err := w.lastProcess()
			if err != nil {
				return errors.Join(err, c.Cancel(), <-ended)
			}
			if killed = true; syscall.Kill(pid, syscall.SIGKILL) != nil {
				return errors.Join(fmt.Errorf("process %d: gone before it was killed", pid), <-ended)
			}
			continue
		}
		break
	}
	if err := w.disks(2); err != nil {
		return err
	}
	var r run.Result
	if err := result(w.command(ctx, 2, "train", "--resume", "--run", dir, "--json"), &r); err != nil {
		return err
	}
	fmt.Fprintf(w.w, "one of four processes killed: %s; two went on to weights %s\n", lineWith(&stderr, "signal 9"), r.ParamsXXH3)
	return w.same(&r, want)
}

// lineWith returns the first line that has a text.
func lineWith(b *bytes.Buffer, text string) string {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return "no line says so"
}

// lastProcess returns the process that trains on the last machine.
func (w *wires) lastProcess() (int, error) {
	pids, err := exec.Command("ip", "netns", "pids", w.machine(machines-1)).Output()
	if err != nil {
		return 0, err
	}
	for _, text := range strings.Fields(string(pids)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == w.mpi {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process of %s on machine %s", w.mpi, w.machine(machines-1))
}

// predicts compares predictions over the parts with predictions over the whole dataset.
func (w *wires) predicts(ctx context.Context, dir, whole string) error {
	if err := w.disks(machines); err != nil {
		return err
	}
	apart, one := w.path("parts.csv"), w.path("whole.csv")
	began := time.Now()
	c := w.command(ctx, machines, "predict", dir, w.parts, apart, "--nodes", "test")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("predict: %w: %s", err, cli.LastLine(out))
	}
	took := time.Since(began)
	if err := os.Rename(whole+".away", whole); err != nil {
		return err
	}
	began = time.Now()
	if err := w.binary.Run(ctx, "predict", dir, whole, one, "--nodes", "test", "--memory", "8GiB"); err != nil {
		return err
	}
	a, err := os.ReadFile(apart)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(one)
	if err == nil && !bytes.Equal(a, b) {
		err = fmt.Errorf("predictions over parts, in %s, differ from predictions over the whole, in %s", apart, one)
	}
	if err == nil {
		fmt.Fprintf(w.w, "predict over the parts: %.1f s; over the whole by one worker: %.1f s; the same %d bytes\n",
			took.Seconds(), time.Since(began).Seconds(), len(b))
	}
	return err
}
