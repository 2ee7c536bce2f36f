#ifndef COACCEL_TEST_CUDA_PRIM_FIXTURE_HPP
#define COACCEL_TEST_CUDA_PRIM_FIXTURE_HPP

#include "cuda/backend.hpp"
#include "support/emulated_kernels.hpp"
#include "support/fake_cuda.hpp"
#include "support/fake_nvrtc.hpp"
#include "support/prim.hpp"
#include "support/start_op.hpp"
#include "support/told.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

// The ops of `prim` over the fake driver and a fake compiler. The kernels are those of the library, compiled as C++.
namespace test_cuda_prim {

using namespace coaccel;
using cuda::backend;
using test::fake_cuda;
namespace code = coaccel_prim;

template <class T>
T argument(void** arguments, std::size_t i)
{
    T made;
    std::memcpy(&made, arguments[i], sizeof(made));
    return made;
}

/// Whether the threads of a block wait for each other.
enum class block_threads : std::uint8_t { separate, together };

/// A kernel of the fake driver that runs this function of kernels/*.cuh.
template <class... Parameters>
fake_cuda::kernel emulated(void (*kernel)(Parameters...), block_threads how)
{
    return [kernel, how](const fake_cuda::launch& l, void** arguments) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            const std::tuple<Parameters...> values{argument<Parameters>(arguments, I)...};
            const auto run = [&] { std::apply(kernel, values); };
            if (how == block_threads::together)
                test::emulate_together(l.grid[0], l.block[0], run);
            else
                test::emulate(l.grid[0], l.block[0], run);
        }(std::index_sequence_for<Parameters...>());
    };
}

struct prim_fixture {
    /// Without kernels: the test adds those that it uses.
    explicit prim_fixture(bool with_compiler = true) : made(create(with_compiler)), here(made->enter())
    {
        made->listen(told.call());
        lane.emplace(made->make_stream(priority::normal).value());
    }

    std::unique_ptr<backend> create(bool with_compiler)
    {
        backend::options o;
        o.helper_threads = 2;
        o.libraries = cuda::library_tables(&fake.api());
        if (with_compiler)
            o.libraries.give(&nvrtc.api());
        return std::move(backend::create(o)).value();
    }

    ~prim_fixture()
    {
        for (void* p : memory)
            made->release(*lane, p, room, memory_kind::device);
    }

    template <class... Parameters>
    void add(const std::string& name, void (*kernel)(Parameters...), block_threads how = block_threads::separate)
    {
        fake.add_kernel("coaccel_prim::" + name, emulated(kernel, how), {sizeof(Parameters)...});
    }

    template <class T>
    T* upload(const std::vector<T>& content)
    {
        for (;;) {
            const int rung = told.count();
            if (void* p = made->allocate(*lane, room, memory_kind::device).value()) {
                memory.push_back(p);
                synchronize();
                std::memcpy(p, static_cast<const void*>(content.data()), content.size() * sizeof(T));
                return static_cast<T*>(p);
            }
            told.wait_for(rung + 1);
        }
    }

    void synchronize()
    {
        backend::event end;
        CHECK_FALSE(made->record(end, *lane));
        CHECK_FALSE(made->synchronize(end));
    }

    /// Prepares an op until it is ready.
    error_code prepare(bound_op& bound)
    {
        REQUIRE_FALSE(made->find_code(bound));
        for (;;) {
            const int rung = told.count();
            const auto ready = made->prepare(*lane, bound);
            if (!ready)
                return ready.error();
            if (ready.value() == readiness::ready)
                return {};
            told.wait_for(rung + 1);
        }
    }

    /// Runs an op with operands at these addresses.
    template <class Op>
    error_code run(const Op& op, std::vector<void*> addresses)
    {
        REQUIRE_FALSE(op.check());
        bound_op bound{.info = &info_of<Op>(), .op = &op, .operands = addresses.data()};
        error_code ec = prepare(bound);
        if (!ec)
            ec = made->enqueue(*lane, bound);
        synchronize();
        const auto late = made->finish(bound);
        CHECK(bound.state == nullptr);
        return ec ? ec : late;
    }

    template <class T>
    static ref<T> elements(std::uint64_t size, std::uint32_t slot)
    {
        return ref<T>::from_raw({1, 1, slot, 1, 0, size, dtype_v<T>});
    }

    static constexpr std::size_t room = 1 << 16;

    fake_cuda fake;
    test::fake_nvrtc nvrtc;
    test::told told;
    std::unique_ptr<backend> made;
    cuda::context_handle::scope here;
    std::optional<backend::stream> lane;
    std::vector<void*> memory;
};

} // namespace test_cuda_prim

#endif
