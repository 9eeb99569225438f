"""From kernels to machine code: LLVM emission, gemm, the thread runtime, the object cache."""
