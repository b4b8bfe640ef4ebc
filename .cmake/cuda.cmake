# Sets TROUPE_HAS_CUDA. Everything but the CUDA and NCCL sources builds and passes without it.
set(TROUPE_HAS_CUDA OFF)
if(NOT TROUPE_CUDA STREQUAL "off")
  find_package(CUDAToolkit QUIET)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(CUDAToolkit_FOUND AND NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(TROUPE_HAS_CUDA ON)
  elseif(TROUPE_CUDA STREQUAL "on")
    message(FATAL_ERROR "TROUPE_CUDA=on: want the CUDA toolkit, nccl.h and libnccl, got toolkit ${CUDAToolkit_FOUND}, "
      "${NCCL_INCLUDE_DIR}, ${NCCL_LIBRARY}; install them or use TROUPE_CUDA=off")
  endif()
endif()
message(STATUS "CUDA and NCCL: ${TROUPE_HAS_CUDA}")
