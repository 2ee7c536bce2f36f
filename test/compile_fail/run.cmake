file(STRINGS ${file} expected REGEX "^// expect: ")
if(NOT expected)
    message(FATAL_ERROR "${file} names no diagnostic")
endif()

list(TRANSFORM includes PREPEND -I)
execute_process(
    COMMAND ${compiler} -std=c++20 -fsyntax-only ${includes} ${file}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
    message(FATAL_ERROR "${file} compiles")
endif()
foreach(line IN LISTS expected)
    string(REPLACE "// expect: " "" regex "${line}")
    if(NOT output MATCHES "${regex}")
        message(FATAL_ERROR "no diagnostic matches '${regex}' in:\n${output}")
    endif()
endforeach()
