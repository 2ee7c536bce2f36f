# cmake -DFILES=file;... -P loads_no_cuda.cmake
# Fails when the loader would look for a CUDA library to start one of these programs or load one of these libraries.
find_program(readelf NAMES readelf llvm-readelf REQUIRED)
if(NOT FILES)
    message(FATAL_ERROR "no files to look at")
endif()

foreach(file IN LISTS FILES)
    execute_process(COMMAND ${readelf} --dynamic ${file} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" needed "${dynamic}")
    # Whatever we build needs the C++ library at least.
    if(NOT needed MATCHES "c\\+\\+")
        message(SEND_ERROR "${file}: ${readelf} does not say what it needs")
    endif()
    # One of our own shared libraries is named after CUDA.
    list(FILTER needed EXCLUDE REGEX "libcoaccel_")
    list(FILTER needed INCLUDE REGEX "cuda|cublas|nvrtc|nvidia")
    if(needed)
        message(SEND_ERROR "${file} needs CUDA to be loaded: ${needed}")
    endif()
endforeach()
