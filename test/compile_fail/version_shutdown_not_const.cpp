// A version is shared by its requests, so that its async_shutdown must be const.
// expect: async_shutdown.shutdown, token. of a version must be const
#include <coaccel/serve/hot_swap.hpp>

struct model {
    template <class Token>
    void async_shutdown(coaccel::shutdown, Token&&)
    {}
};

void load(coaccel::serve::hot_swap<model>& swap, coaccel::serve::version_source<model> source)
{
    swap.async_load(source, [](coaccel::error_code, std::uint64_t) {});
}
