#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_CALLS_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_CALLS_HPP

#include "blas_fixture.hpp"

#include <coaccel/ops/blas.hpp>

#include <string>
#include <utility>

// The arguments with which an op calls cuBLAS.
namespace test {

/// The value that an argument points to.
struct points_to {
    std::complex<double> value;
};

/// The letter of an element type in the names of cuBLAS.
template <class T>
std::string letter()
{
    if constexpr (coaccel::blas::complex_element<T>)
        return sizeof(T) == 8 ? "C" : "Z";
    else
        return sizeof(T) == 4 ? "S" : "D";
}

template <class T>
void check_argument(const blas_fixture& f, const blas_recorder::argument& got, const coaccel::ref<T>& wanted)
{
    CHECK(got.address == static_cast<const T*>(f.buffers[wanted.raw().slot].first) + wanted.raw().offset);
}

inline void check_argument(const blas_fixture&, const blas_recorder::argument& got, const points_to& wanted)
{
    CHECK(got.first == wanted.value);
}

template <class Number>
    requires(std::is_integral_v<Number> || std::is_enum_v<Number>)
void check_argument(const blas_fixture&, const blas_recorder::argument& got, Number wanted)
{
    CHECK(got.address == nullptr);
    CHECK(got.number == static_cast<long long>(wanted));
}

/// Runs an op, and checks the last call of cuBLAS: the function, and its arguments after the handle. A ref stands for
/// its address.
template <class Op, class... Wanted>
void check_call(blas_fixture& f, const Op& op, const std::string& function, const Wanted&... wanted)
{
    CAPTURE(function);
    REQUIRE_FALSE(f.run(op));
    const auto call = f.blas.last_call();
    CHECK(call.function == function);
    CHECK(call.pointers == CUBLAS_POINTER_MODE_HOST);
    REQUIRE(call.arguments.size() == sizeof...(wanted));
    std::size_t i = 0;
    const auto check = [&](const auto& one) {
        CAPTURE(i);
        check_argument(f, call.arguments[i], one);
        ++i;
    };
    (check(wanted), ...);
}

} // namespace test

#endif
