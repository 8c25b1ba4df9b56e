#!/bin/sh
# Compiles the kernels of this folder to PTX. It needs clang-19 and no part of CUDA.
set -e
for source in *.cu; do
	clang-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-feature=+ptx78 -nocudainc \
		-nocudalib -O3 -Wall -Werror -S -o "${source%.cu}.ptx" "$source"
done
