// A second file of the same plug-in, in C++17 for older versions of nvcc.
#include <coaccel/plugin/export.hpp>

namespace second {

void negate(coaccel::plugin::stream, const double* from, double* to, unsigned n)
{
    for (unsigned i = 0; i < n; ++i)
        to[i] = -from[i];
}

} // namespace second

COACCEL_PLUGIN_FUNCTION(second::negate)
