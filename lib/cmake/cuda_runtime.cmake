# The target coaccel_cuda_runtime, if the static library of the CUDA runtime is installed: for programs that show how
# coaccel works beside code of the runtime. coaccel itself does not need it.
if(NOT TARGET coaccel_cuda OR TARGET coaccel_cuda_runtime)
    return()
endif()
find_library(COACCEL_CUDA_RUNTIME cudart_static
    HINTS ${COACCEL_CUDA_INCLUDE_DIR}/.. ENV CUDA_PATH ENV CUDA_HOME
    PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib
    DOC "The static library of the CUDA runtime")
mark_as_advanced(COACCEL_CUDA_RUNTIME)
if(COACCEL_CUDA_RUNTIME AND EXISTS ${COACCEL_CUDA_INCLUDE_DIR}/cuda_runtime_api.h)
    add_library(coaccel_cuda_runtime INTERFACE)
    target_include_directories(coaccel_cuda_runtime SYSTEM INTERFACE ${COACCEL_CUDA_INCLUDE_DIR})
    target_link_libraries(coaccel_cuda_runtime INTERFACE ${COACCEL_CUDA_RUNTIME} Threads::Threads ${CMAKE_DL_LIBS} rt)
endif()
