// Package torch reads the files of torch.save, .pt and .pth, without PyTorch and without running
// what they say: [Open], then a type switch over [File.Value], in which a tensor is a *[Tensor].
//
// Opening reads the pickle, 256 MiB at most, and leaves the tensors' storages in the file;
// [Tensor.Reader] streams one in row-major order, whatever its strides, as often as it is asked.
// Both containers are read, the zip archive of PyTorch 1.6 and later and the consecutive pickles
// before it, of either byte order, with pickle protocols 1 to 5. NumPy arrays inside come as
// package pickle has them. The objects of PyTorch Geometric (Data, HeteroData and their stores) are
// *[pickle.Object]s with their state; [Fields] gives what a user stored in one. A subclass of
// Tensor, such as EdgeIndex, is read as a plain tensor.
//
// A tensor of other elements than plain numbers (complex, quantized) is in the Value, but its
// Reader returns an error. TorchScript archives hold code, and are refused. Other classes are
// refused by name, as package pickle does.
//
// # Bounds
//
// What the pickle claims about a tensor is held against its storage when the file is opened, and
// the storage against the file. A tensor of 2^40 elements costs what its storage has: one that
// repeats its storage may have 64 MiB. Names of storages are keys of the archive's directory, not
// paths.
//
// The checksum of a storage is compared by the reading that takes all of it front to back, as those
// of one contiguous tensor do; other readings do without.
//
// A File is safe for concurrent use; a Reader is used by one goroutine.
package torch
