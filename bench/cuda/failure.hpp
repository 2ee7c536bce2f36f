#ifndef COACCEL_BENCH_CUDA_FAILURE_HPP
#define COACCEL_BENCH_CUDA_FAILURE_HPP

#include <coaccel/core/result.hpp>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace coaccel::bench {

/// Ends one measurement; the report prints the message.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(const error_code& ec, const char* what)
{
    if (ec)
        throw failure(std::string(what) + ": " + ec.message());
}

template <class T>
T value_of(result<T> r, const char* what)
{
    if (!r)
        throw failure(std::string(what) + ": " + r.error().message());
    if constexpr (!std::is_void_v<T>)
        return std::move(r).value();
}

} // namespace coaccel::bench

#endif
