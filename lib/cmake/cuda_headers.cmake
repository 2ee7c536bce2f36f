# COACCEL_CUDA=AUTO|ON|OFF -> COACCEL_CUDA_INCLUDE_DIR, empty when the headers are absent or unwanted.
# Only headers are needed: the libraries are opened at run time.
if(COACCEL_CUDA STREQUAL "AUTO" OR COACCEL_CUDA)
    find_path(COACCEL_CUDA_INCLUDE_DIR cuda.h
        HINTS ENV CUDA_PATH ENV CUDA_HOME
        PATHS /usr/local/cuda /opt/cuda
        PATH_SUFFIXES include
        DOC "Folder that holds the CUDA toolkit's cuda.h")
    mark_as_advanced(COACCEL_CUDA_INCLUDE_DIR)
    if(NOT COACCEL_CUDA_INCLUDE_DIR AND NOT COACCEL_CUDA STREQUAL "AUTO")
        message(FATAL_ERROR
            "COACCEL_CUDA=${COACCEL_CUDA}, but cuda.h was not found. Install the CUDA toolkit's headers, set "
            "COACCEL_CUDA_INCLUDE_DIR to their folder, or use COACCEL_CUDA=AUTO or OFF.")
    endif()
endif()

if(COACCEL_CUDA AND COACCEL_CUDA_INCLUDE_DIR)
    set(COACCEL_HAS_CUDA_HEADERS ON)
    message(STATUS "coaccel: CUDA headers in ${COACCEL_CUDA_INCLUDE_DIR}")
else()
    set(COACCEL_HAS_CUDA_HEADERS OFF)
    message(STATUS "coaccel: without CUDA headers")
endif()
