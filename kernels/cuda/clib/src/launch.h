// The kernels of kernels/cuda/src, compiled for the host, behind one function. This is the part of
// a libcuda.so.1 for tests that computes; the calls of the driver stand around it.
//
// A launch takes the buffer that a driver takes as CU_LAUNCH_PARAM_BUFFER_POINTER: parameters in
// order, each at a multiple of its size. Pointers are addresses of this process. Blocks run one
// after another, and a launch is done when it returns. One launch runs at a time; others wait.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GNN_OK = 0,
  GNN_NO_KERNEL = 1,  // no kernel has this name
  GNN_BAD_SHAPE = 2,  // the grid or the block is empty, or the block has over 1,024 threads or rows
  GNN_FAULT = 3,      // see gnn_fault
};

// gnn_launch runs a kernel. shared, the bytes of dynamic shared memory, is 0: no kernel has any.
// The environment variable GNN_LAUNCH_ORDER, a number from 1, has blocks, warps and lanes run in
// another order, the same for the same number.
int gnn_launch(const char* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
               unsigned block_y, unsigned block_z, unsigned shared, const void* params);

// gnn_fault returns what went wrong in the last launch that returned GNN_FAULT: an access of 16
// bytes at an odd address, or threads that wait for others that do not come.
const char* gnn_fault(void);

// gnn_fault_text copies that text to the size bytes at to, and ends it with a 0.
int gnn_fault_text(char* to, unsigned long size);

// gnn_kernel_count returns the number of kernels, and gnn_kernel_name the i-th name.
unsigned gnn_kernel_count(void);
const char* gnn_kernel_name(unsigned i);

// gnn_kernel_size returns the bytes of a kernel's parameters, or -1, and gnn_kernel_param the
// offset and the size of the i-th, or GNN_NO_KERNEL if there is none.
long gnn_kernel_size(const char* kernel);
int gnn_kernel_param(const char* kernel, unsigned i, unsigned long* offset, unsigned long* size);

#ifdef __cplusplus
}
#endif
