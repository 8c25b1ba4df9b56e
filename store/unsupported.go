//go:build !(linux || darwin || freebsd) || !(amd64 || arm64 || riscv64 || ppc64le || loong64)

package store

// The build stops here on Windows, on 32-bit and on big-endian machines: datasets are mapped
// little-endian files, often larger than a 32-bit address space.
const _ = gnnstore_needs_a_64_bit_little_endian_Linux_or_macOS_system__on_Windows_use_WSL2
