package driver

// Row is a call, with what each provider takes for it.
type Row struct {
	Call     string // the field of [Calls]
	Symbol   string // the function of libcuda.so.1, which purego looks up
	Gorgonia string // the function of gorgonia.org/cu; "" where it has none, and a call of our own stands in
}

// Table has a row for each field of [Calls], in their order.
//
// gorgonia.org/cu v0.9.6 lacks page-locked memory but for freeing it, cuFuncSetAttribute, and the
// driver's words for errors. Its Launch takes a pointer for each argument, not a packed buffer, and
// allocates twice. It calls cuInit itself, when the program starts. So these are ours.
func Table() []Row {
	return []Row{
		{"Init", "cuInit", ""},
		{"DriverGetVersion", "cuDriverGetVersion", "Version"},
		{"DeviceGetCount", "cuDeviceGetCount", "NumDevices"},
		{"DeviceGet", "cuDeviceGet", "GetDevice"},
		{"DeviceGetName", "cuDeviceGetName", "Device.Name"},
		{"DeviceGetAttribute", "cuDeviceGetAttribute", "Device.Attribute"},
		{"DeviceTotalMem", "cuDeviceTotalMem_v2", "Device.TotalMem"},
		{"DeviceGetUUID", "cuDeviceGetUuid_v2", "Device.UUID"},
		{"DevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", "Device.RetainPrimaryCtx"},
		{"DevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", "Device.ReleasePrimaryCtx"},
		{"CtxSetCurrent", "cuCtxSetCurrent", "SetCurrentContext"},
		{"CtxGetCurrent", "cuCtxGetCurrent", "CurrentContext"},
		{"CtxSynchronize", "cuCtxSynchronize", "Synchronize"},
		{"MemAlloc", "cuMemAlloc_v2", "MemAlloc"},
		{"MemFree", "cuMemFree_v2", "MemFree"},
		{"MemGetInfo", "cuMemGetInfo_v2", "MemInfo"},
		{"MemHostAlloc", "cuMemHostAlloc", ""},
		{"MemFreeHost", "cuMemFreeHost", "MemFreeHost"},
		{"MemHostRegister", "cuMemHostRegister_v2", ""},
		{"MemHostUnregister", "cuMemHostUnregister", ""},
		{"MemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2", ""},
		{"MemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", "MemcpyHtoDAsync"},
		{"MemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", "MemcpyDtoHAsync"},
		{"MemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", "MemcpyDtoDAsync"},
		{"MemsetD8Async", "cuMemsetD8Async", "MemsetD8Async"},
		{"MemsetD32Async", "cuMemsetD32Async", "MemsetD32Async"},
		{"StreamCreate", "cuStreamCreate", "MakeStream"},
		{"StreamDestroy", "cuStreamDestroy_v2", "Stream.Destroy"},
		{"StreamSynchronize", "cuStreamSynchronize", "Stream.Synchronize"},
		{"StreamQuery", "cuStreamQuery", "Stream.Query"},
		{"StreamWaitEvent", "cuStreamWaitEvent", "Stream.Wait"},
		{"EventCreate", "cuEventCreate", "MakeEvent"},
		{"EventDestroy", "cuEventDestroy_v2", "DestroyEvent"},
		{"EventRecord", "cuEventRecord", "Event.Record"},
		{"EventSynchronize", "cuEventSynchronize", "Event.Synchronize"},
		{"EventQuery", "cuEventQuery", "Event.Query"},
		{"EventElapsedTime", "cuEventElapsedTime", "Event.Elapsed"},
		{"ModuleLoadDataEx", "cuModuleLoadDataEx", "LoadDataEx"},
		{"ModuleUnload", "cuModuleUnload", "Module.Unload"},
		{"ModuleGetFunction", "cuModuleGetFunction", "Module.Function"},
		{"FuncGetAttribute", "cuFuncGetAttribute", "Function.Attribute"},
		{"FuncSetAttribute", "cuFuncSetAttribute", ""},
		{"LaunchKernel", "cuLaunchKernel", ""},
		{
			"OccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
			"Function.MaxActiveBlocksPerMultiProcessor",
		},
		{"GetErrorName", "cuGetErrorName", ""},
		{"GetErrorString", "cuGetErrorString", ""},
	}
}
