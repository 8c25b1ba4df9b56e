#!/bin/bash
# Runs every stage of look on a machine with an NVIDIA GPU, each as a process of its own:
#
#	bash tools/cuda/look.sh .gpu/look
#
# It goes on after a stage that fails, and keeps the output in $OUT/look.txt. All stages together
# get 350 seconds. LOOK_FLAGS holds flags for each call of look, such as -small.
look=$1
here=$(dirname "$0")
out=${OUT:-/tmp}
python=/opt/torch/.venv/bin/python3
[ -x "$python" ] || python=python3
export PYTHONUNBUFFERED=1
export CUDA_CACHE_PATH=$(mktemp -d)

# stage NUMBER SECONDS COMMAND... runs a command under a time limit, and prints its exit status.
stage() {
	local number=$1 limit=$2 left=$((350 - SECONDS)) begin=$SECONDS
	shift 2
	[ "$left" -lt "$limit" ] && limit=$left
	if [ "$limit" -lt 2 ]; then
		echo "stage $number skipped: no time is left"
		return
	fi
	echo "== stage $number: $*"
	timeout -k 5 "$limit" "$@"
	local code=$?
	echo "stage $number exit $code after $((SECONDS - begin)) s"
	case $number in
	5 | 6.*) ;; # PyTorch Geometric and compute-sanitizer may be missing
	*) [ $code = 0 ] || failed=1 ;;
	esac
}

# libraries prints the paths of the driver and of cuBLAS. It searches PyTorch's folder first, since
# PyTorch's figures come from the cuBLAS there. One pass finds both: it is slow on a cold disk.
libraries() {
	timeout 15 find /opt /usr /lib /root /home \( -name 'libcuda.so*' -o -name 'libcublasLt.so*' \) \
		2>/dev/null
}

machine() {
	local query=name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm
	query+=,power.limit,pcie.link.gen.current,pcie.link.width.current,ecc.mode.current
	query+=,mig.mode.current,compute_mode
	nvidia-smi --query-gpu=$query --format=csv
	nvidia-smi | sed -n 3,4p
	echo "locked memory: $(ulimit -l) kB"
	uname -r
	lscpu | grep -E '^(Model name|CPU\(s\)|Thread|L2|L3|NUMA node\(s\))'
	lscpu | grep -oE '\b(avx2|avx512[a-z0-9_]*|amx[a-z0-9_]*|avx_vnni|fma|f16c)\b' | sort -u |
		tr '\n' ' '
	echo
	ldd --version | head -1
	grep -E 'MemTotal|HugePages_Total|Hugepagesize' /proc/meminfo
	cat /sys/kernel/mm/transparent_hugepage/enabled
	echo "libcuda: $libcuda"
	echo "libcublasLt: $libcublas"
	ldconfig -p | grep -E 'libcuda\.so|libcublas'
	which nvcc compute-sanitizer ncu nsys ptxas "$python"
	ls -la "$look"
}

all() {
	found=$(libraries)
	libcuda=$(grep 'libcuda\.so' <<<"$found" | grep -v stubs)
	libcublas=$(grep 'libcublasLt\.so\.' <<<"$found")
	flags=($LOOK_FLAGS)
	if [ -z "$LOOK_FLAGS" ] && [ -n "$libcuda" ] && ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
		flags=(-library "$(head -1 <<<"$libcuda")")
	fi
	cublas=$(grep -E 'site-packages|dist-packages' <<<"$libcublas" | head -1)
	[ -n "$cublas" ] || cublas=$(head -1 <<<"$libcublas")
	speed=("${flags[@]}")
	[ -n "$cublas" ] && speed+=(-cublas "$(dirname "$cublas")")

	echo "== stage 0: machine"
	machine
	stage 0 20 "$look" "${flags[@]}" device
	stage 1.contexts 30 "$look" "${flags[@]}" contexts
	stage 1.load.uncached 30 env CUDA_CACHE_DISABLE=1 LOOK_LOG=1 "$look" "${flags[@]}" load
	stage 1.load.cold 30 "$look" "${flags[@]}" load
	stage 1.load.warm 30 "$look" "${flags[@]}" load
	stage 1.pack 10 "$look" "${flags[@]}" pack
	stage 1.errors 10 "$look" "${flags[@]}" errors
	stage 2.memory 45 "$look" "${flags[@]}" memory
	stage 2.order 20 "$look" "${flags[@]}" order
	stage 3 60 "$look" "${flags[@]}" kernels
	stage 4 60 "$look" "${speed[@]}" speed
	stage 5 60 "$python" "$here/pyg.py"
	for tool in memcheck racecheck; do
		stage 6.$tool 40 compute-sanitizer --error-exitcode 9 --tool $tool "$look" "${flags[@]}" \
			-small kernels
	done
	# The second provider, where its binary lies beside the first.
	other=$(dirname "$look")/gorgonia
	[ -x "$other" ] && stage 1.gorgonia 20 "$other"
	stage 1.illegal 10 "$look" "${flags[@]}" illegal
	nvidia-smi --query-gpu=name,memory.used,clocks.sm,temperature.gpu --format=csv,noheader
	echo "all after $SECONDS s"
	return $failed
}

failed=0
all 2>&1 | tee "$out/look.txt"
exit "${PIPESTATUS[0]}"
