#include "blas_recorder.hpp"
#include "cuda/backend.hpp"
#include "cuda/prim/kernel_names.hpp"
#include "plan/file/known_ops.hpp"
#include "support/address_kernel.hpp"
#include "support/fake_cublaslt.hpp"
#include "support/fake_curand.hpp"
#include "support/fake_nvrtc.hpp"
#include "support/op_values.hpp"
#include "support/told.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace test_cuda_op_captures {

// An op states whether it can be part of a graph, and the backend relies on it. Here each op of the library is launched
// in a capture of the fake driver, which reports every call that a capture does not permit.
namespace {

using namespace coaccel;
using cuda::backend;

/// An op with valid fields.
struct valid_op {
    const op_info& info;
    std::vector<detail::op_unit> data;

    std::byte* field(const op_field& f) { return reinterpret_cast<std::byte*>(data.data()) + f.offset; }

    valid_op(const detail::known_op& known, test::optional_operands which) : info(*known.info), data(known.defaults)
    {
        std::uint32_t slot = 0;
        for (const op_field& f : info.fields)
            if (f.what == op_field::kind::value)
                test::set_value(info, f, field(f), which);
            else if (test::has_operand(info, f, which))
                test::set_bytes(field(f), any_ref{.device = 1,
                                                  .slot = slot++,
                                                  .offset = test::operand_offset,
                                                  .size = test::elements_of_operand(info, f),
                                                  .type = f.type});
    }

    /// False: it has no such field, or refuses zero.
    bool set_alpha_to_zero()
    {
        for (const op_field& f : info.fields)
            if (f.name == "alpha") {
                std::memset(field(f), 0, f.size);
                return !info.check(data.data());
            }
        return false;
    }

    capture_obstacle obstacle() const { return info.find_obstacle(data.data()); }
};

struct capture_fixture {
    capture_fixture() : made(create()), here(made->enter())
    {
        for (const std::string& name : cuda::prim_kernel_names())
            fake.add_kernel(name, [](const test::fake_cuda::launch&, void**) {}, {});
        test::add_address_kernel(fake);
        made->listen(told.call());
        lane.emplace(made->make_stream(priority::normal).value());
        for (void*& p : memory)
            p = allocate();
    }

    ~capture_fixture()
    {
        for (void* p : memory)
            made->release(*lane, p, room, memory_kind::device);
    }

    std::unique_ptr<backend> create()
    {
        backend::options o;
        o.helper_threads = 2;
        o.libraries = cuda::library_tables(&fake.api(), &blas.api, &lt.api(), &curand.api(), &nvrtc.api());
        return std::move(backend::create(o)).value();
    }

    void* allocate()
    {
        for (;;) {
            const int rung = told.count();
            if (void* p = made->allocate(*lane, room, memory_kind::device).value()) {
                synchronize();
                std::memset(p, 0, room);
                return p;
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

    bound_op bind(valid_op& o)
    {
        addresses.assign(o.info.operands.size(), nullptr);
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            const op_field& f = o.info.operands[i];
            any_ref where;
            std::memcpy(&where, o.field(f), sizeof(where));
            if (detail::has_none(f, where))
                continue;
            REQUIRE(where.slot < std::size(memory));
            addresses[i] = static_cast<std::byte*>(memory[where.slot]) + test::operand_offset * size_of(f.type);
        }
        bound_op b{.info = &o.info, .op = o.data.data(), .operands = addresses.data()};
        REQUIRE_FALSE(o.info.check(b.op));
        REQUIRE_FALSE(made->find_code(b));
        return b;
    }

    /// Prepares an op until it is ready or on the stream.
    readiness prepare(bound_op& o)
    {
        for (;;) {
            const int rung = told.count();
            const auto done = made->prepare(*lane, o);
            REQUIRE_MESSAGE(done, done.error().message());
            if (done.value() != readiness::pending)
                return done.value();
            told.wait_for(rung + 1);
        }
    }

    void finish(bound_op& o)
    {
        synchronize();
        CHECK_FALSE(made->finish(o));
        CHECK(o.state == nullptr);
    }

    /// As a plan does when it is loaded.
    void warm_up(valid_op& o)
    {
        bound_op b = bind(o);
        if (prepare(b) == readiness::ready)
            CHECK_FALSE(made->enqueue(*lane, b));
        finish(b);
    }

    /// Prepares the op once more, which needs no memory for this launch only.
    void prepare_again(bound_op& o)
    {
        const auto allocated = fake.allocated();
        REQUIRE(prepare(o) == readiness::ready);
        CHECK(fake.allocated() == allocated);
    }

    void record(bound_op& o)
    {
        const auto s = lane->state().native;
        const auto& api = made->api();
        REQUIRE(api.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
        CHECK_FALSE(made->enqueue(*lane, o));
        CUgraph graph = nullptr;
        CHECK(api.cuStreamEndCapture(s, &graph) == CUDA_SUCCESS);
        REQUIRE(graph);
        CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    }

    void check(valid_op o)
    {
        CAPTURE(o.info.name);
        const auto stated = o.obstacle();
        if (stated != capture_obstacle::none)
            return;
        warm_up(o);
        bound_op b = bind(o);
        prepare_again(b);
        record(b);
        ++recorded;
        finish(b);
        CHECK(fake.violations().empty());
    }

    static constexpr std::size_t room = 4096;

    test::fake_cuda fake;
    test::blas_recorder blas{fake};
    test::fake_cublaslt lt{fake};
    test::fake_curand curand{fake};
    test::fake_nvrtc nvrtc;
    test::told told;
    std::unique_ptr<backend> made;
    cuda::context_handle::scope here;
    std::optional<backend::stream> lane;
    void* memory[16]{};
    std::vector<void*> addresses;
    int recorded = 0;
};

} // namespace

TEST_SUITE_BEGIN("cuda op captures");

TEST_CASE_FIXTURE(capture_fixture, "every op that states no obstacle can be captured")
{
    cuda::all_ops().for_each([&](const op_info& info) {
        const detail::known_op* const known = detail::find_known_op(info.name);
        if (!known)
            return;
        for (const auto which : {test::optional_operands::given, test::optional_operands::omitted}) {
            valid_op o(*known, which);
            check(o);
            if (o.set_alpha_to_zero())
                check(o);
        }
    });
    CHECK(recorded > 400);
}

TEST_CASE("an op states an obstacle if the backend cannot launch it in a capture")
{
    cuda::all_ops().for_each([](const op_info& info) {
        CAPTURE(info.name);
        const auto& code = *cuda::all_ops().find(info.id);
        const bool may_capture = info.obstacle_of || info.obstacle == capture_obstacle::none;
        if (!code.enqueue || info.reply_size != 0 || info.state)
            CHECK_FALSE(may_capture);
    });
}

TEST_SUITE_END();

} // namespace test_cuda_op_captures
