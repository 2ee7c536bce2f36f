# Writes a source file with the contents of FILES, one after another, to OUT.
set(text)
foreach(file IN LISTS FILES)
    file(READ ${file} part)
    if(part MATCHES "\\)coaccel\"")
        message(FATAL_ERROR "${file} contains the end of the string literal")
    endif()
    string(APPEND text "${part}")
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY NEWLINE_STYLE UNIX CONTENT [[
#include "cuda/prim/kernel_source.hpp"

namespace coaccel::cuda {

std::string_view prim_kernel_source() noexcept
{
    return R"coaccel(@text@)coaccel";
}

} // namespace coaccel::cuda
]])
