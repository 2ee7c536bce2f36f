#include "host/op_table.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

namespace {

using namespace coaccel;
using host::op_table;

struct probe {
    using reply = int;
    static constexpr std::string_view name = "test.probe";
    static constexpr library lib = library::user;

    int what = 0;

    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(probe, (), (what), (), ())
};

int run_probe(const probe& op, const bound_op&)
{
    switch (op.what) {
    case 1: throw std::bad_alloc();
    case 2: throw std::runtime_error("kernel");
    case 3: throw 42;
    default: return 7;
    }
}

bool knows(std::uint64_t id)
{
    return op_table::instance().find(id) != nullptr;
}

template <class... Ops>
bool all_there()
{
    return (knows(info_of<Ops>().id) && ...);
}

template <class... Ts>
bool memory_ops_there(type_list<Ts...>)
{
    return (all_there<memory::fill<Ts>, memory::copy<Ts>, detail::write_op<Ts>, detail::read_op<Ts>,
                      detail::collect_op<Ts>>() &&
            ...);
}

template <class T>
bool blas_there()
{
    return all_there<blas::axpy<T>, blas::scal<T>, blas::copy<T>, blas::swap<T>, blas::dot<T>, blas::nrm2<T>,
                     blas::asum<T>, blas::iamax<T>, blas::gemv<T>, blas::ger<T>>();
}

} // namespace

TEST_SUITE_BEGIN("op_table");

TEST_CASE("every op of the library has a kernel")
{
    CHECK(memory_ops_there(element_types{}));
    CHECK(blas_there<float>());
    CHECK(blas_there<double>());
    CHECK(all_there<blas::gemm<float>, blas::gemm<double>, blas::gemm<half>, blas::gemm<bfloat16>>());
    CHECK(all_there<blas::gemm_strided_batched<float>, blas::gemm_strided_batched<double>,
                    blas::gemm_strided_batched<half>, blas::gemm_strided_batched<bfloat16>>());
    CHECK(knows(detail::user_op_id));
}

TEST_CASE("an unknown op has no kernel")
{
    CHECK_FALSE(knows(0));
    CHECK_FALSE(knows(info_of<probe>().id));
}

TEST_CASE("a kernel's reply is written, and its exception becomes the op's status")
{
    op_table table;
    table.add<probe, run_probe>();
    const host::kernel kernel = table.find(info_of<probe>().id);
    const bool found = kernel != nullptr;
    REQUIRE(found);
    struct row {
        const char* name;
        int what;
        error_code status;
        int reply;
    };
    const row rows[] = {
        {"success", 0, {}, 7},
        {"no memory", 1, errc::out_of_memory, -1},
        {"an exception", 2, errc::backend_error, -1},
        {"something thrown", 3, errc::backend_error, -1},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        const probe op{r.what};
        int reply = -1;
        bound_op bound{.info = &info_of<probe>(), .op = &op, .reply = &reply};
        kernel(bound);
        CHECK(bound.status == r.status);
        CHECK(reply == r.reply);
    }
}

TEST_SUITE_END();
