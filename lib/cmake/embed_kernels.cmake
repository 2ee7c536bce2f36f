# Writes a source file with the contents of FILES, one after another, to OUT. Each is a literal of its own, because
# compilers need not support longer ones than 64 KiB.
set(text)
foreach(file IN LISTS FILES)
    file(READ ${file} part)
    if(part MATCHES "\\)coaccel\"")
        message(FATAL_ERROR "${file} contains the end of the string literal")
    endif()
    string(APPEND text "    text += R\"coaccel(${part})coaccel\";\n")
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY NEWLINE_STYLE UNIX CONTENT [[
#include "cuda/prim/kernel_source.hpp"

namespace coaccel::cuda {

std::string prim_kernel_source()
{
    std::string text;
@text@    return text;
}

} // namespace coaccel::cuda
]])
