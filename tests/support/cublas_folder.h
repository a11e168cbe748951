/* Folders of a stand-in for cuBLAS (tests/system/node/standin_cublas.h). */
#ifndef TESTS_SUPPORT_CUBLAS_FOLDER_H
#define TESTS_SUPPORT_CUBLAS_FOLDER_H

/** Makes folder `name` in the build folder, in which libcublas and libcublasLt of this major
 *  version are tests/system/node/LIBRARY.so, and returns its path, valid until the next call. */
const char *cublas_folder(const char *name, const char *library, int major);
/** Sets SHERD_CUDA_PATH to this folder, or to "": cuBLAS is not used. */
void cublas_use(const char *folder);

#endif
