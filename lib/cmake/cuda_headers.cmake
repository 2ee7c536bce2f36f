# COACCEL_CUDA=AUTO|ON|OFF -> COACCEL_CUDA_INCLUDE_DIR, empty when the headers are absent or unwanted.
# Only headers are needed: the libraries are opened at run time.
set(problem "")
if(COACCEL_CUDA STREQUAL "AUTO" OR COACCEL_CUDA)
    find_path(COACCEL_CUDA_INCLUDE_DIR cuda.h
        HINTS ENV CUDA_PATH ENV CUDA_HOME
        PATHS /usr/local/cuda /opt/cuda
        PATH_SUFFIXES include
        DOC "Folder that holds the CUDA toolkit's cuda.h")
    mark_as_advanced(COACCEL_CUDA_INCLUDE_DIR)

    if(NOT COACCEL_CUDA_INCLUDE_DIR)
        set(problem "cuda.h was not found")
    else()
        foreach(header cudaTypedefs.h cublas_v2.h cublasLt.h curand.h nvrtc.h)
            if(NOT EXISTS ${COACCEL_CUDA_INCLUDE_DIR}/${header})
                set(problem "${COACCEL_CUDA_INCLUDE_DIR} has no ${header}")
            endif()
        endforeach()
        file(STRINGS ${COACCEL_CUDA_INCLUDE_DIR}/cuda.h version REGEX "#define CUDA_VERSION ")
        string(REGEX REPLACE "[^0-9]" "" version "${version}")
        if(version LESS 12040)
            set(problem "the headers in ${COACCEL_CUDA_INCLUDE_DIR} are older than CUDA 12.4")
        endif()
    endif()
    if(problem AND NOT COACCEL_CUDA STREQUAL "AUTO")
        message(FATAL_ERROR
            "COACCEL_CUDA=${COACCEL_CUDA}, but ${problem}. Install the CUDA toolkit's headers, set "
            "COACCEL_CUDA_INCLUDE_DIR to their folder, or use COACCEL_CUDA=AUTO or OFF.")
    endif()
endif()

if(COACCEL_CUDA AND NOT problem)
    set(COACCEL_HAS_CUDA_HEADERS ON)
    message(STATUS "coaccel: CUDA headers in ${COACCEL_CUDA_INCLUDE_DIR}")
else()
    set(COACCEL_HAS_CUDA_HEADERS OFF)
    message(STATUS "coaccel: without the CUDA backend ${problem}")
endif()
