#ifndef COACCEL_TEST_FUZZ_PARENT_REQUESTS_HPP
#define COACCEL_TEST_FUZZ_PARENT_REQUESTS_HPP

#include "seeds.hpp"
#include "support/plan_records.hpp"

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <type_traits>
#include <variant>

// Requests of every kind that a context sends to its worker, without a device or a handler.
namespace fuzz {

namespace detail = coaccel::detail;
using coaccel::bound_op;
using coaccel::info_of;
using floats = coaccel::ref<float>;

template <class Op>
class one_op final : public detail::request {
    using reply = typename Op::reply;

public:
    explicit one_op(const Op& op) : op_(op)
    {
        bound_ = {.info = &info_of<Op>(), .op = &op_, .reply = std::is_void_v<reply> ? nullptr : &reply_};
        ops = {&bound_, 1};
    }

    void post() override {}
    void destroy() noexcept override {}

private:
    Op op_;
    std::conditional_t<std::is_void_v<reply>, std::monostate, reply> reply_{};
    bound_op bound_;
};

/// Allocates a buffer and writes to it.
class upload final : public detail::request {
public:
    explicit upload(std::span<const float> data)
        : allocate_{.count = data.size(), .type = coaccel::dtype::f32}, write_{.src = data.data(), .count = data.size()}
    {
        bound_[0] = {.info = &info_of<detail::allocate_op>(), .op = &allocate_, .reply = &made_};
        bound_[1] = {.info = &info_of<detail::write_op<float>>(), .op = &write_};
        ops = bound_;
    }

    void prepare(std::size_t i) noexcept override
    {
        if (i == 1)
            write_.dst = floats::from_raw(made_.ref);
    }
    void post() override {}
    void destroy() noexcept override {}

private:
    detail::allocation made_;
    detail::allocate_op allocate_;
    detail::write_op<float> write_;
    std::array<bound_op, 2> bound_;
};

/// Loads an instance of a plan.
class load_plan final : public detail::request {
public:
    load_plan(const detail::plan_data& p, const std::vector<coaccel::any_ref>& refs)
        : info_(detail::make_load_info(p)), op_(detail::op_units(info_.size))
    {
        const detail::plan_load_head head{1, test::plan_chain, &p};
        std::memcpy(op_.data(), &head, sizeof(head));
        std::memcpy(reinterpret_cast<std::byte*>(op_.data()) + sizeof(head), refs.data(),
                    refs.size() * sizeof(coaccel::any_ref));
        bound_ = {.info = &info_, .op = op_.data(), .reply = &made_};
        ops = {&bound_, 1};
    }

    void post() override {}
    void destroy() noexcept override {}

private:
    coaccel::op_info info_;
    std::vector<detail::op_unit> op_;
    detail::plan_loaded made_;
    bound_op bound_;
};

/// Runs an instance, with large arguments unless `bytes` is zero.
class run_plan final : public detail::request {
    using byte = std::uint8_t;

public:
    run_plan(const coaccel::any_ref& memory, std::size_t bytes) : in_(bytes), out_(bytes)
    {
        const auto all = coaccel::ref<byte>::from_raw(memory);
        run_.memory = all;
        run_.instance = 1;
        run_.chain = test::plan_chain;
        run_.inputs = &input_;
        run_.outputs = &output_;
        run_.input_count = run_.output_count = 1;
        write_ = {all.first(bytes), in_.data(), bytes};
        read_ = {all.subspan(bytes, bytes), out_.data(), bytes};
        bound_[0] = {.info = &info_of<detail::write_op<byte>>(), .op = &write_};
        bound_[1] = {.info = &info_of<detail::plan_run_op>(), .op = &run_};
        bound_[2] = {.info = &info_of<detail::read_op<byte>>(), .op = &read_};
        ops = bytes == 0 ? std::span(bound_).subspan(1, 1) : std::span(bound_);
    }

    void post() override {}
    void destroy() noexcept override {}

private:
    std::vector<byte> in_, out_;
    std::byte x_[16]{}, y_[16]{};
    detail::run_argument input_{x_, {0, 16}}, output_{y_, {256, 16}};
    detail::plan_run_op run_;
    detail::write_op<byte> write_;
    detail::read_op<byte> read_;
    std::array<bound_op, 3> bound_;
};

/// Collects downloaded data.
struct gathered {
    detail::collector sink() noexcept { return {this, &append, &room}; }

    static void append(void* self, const void* from, std::size_t size) noexcept
    {
        const auto* first = static_cast<const std::byte*>(from);
        static_cast<gathered*>(self)->all.assign(first, first + size);
    }
    static void* room(void* self, std::size_t size) noexcept
    {
        auto& all = static_cast<gathered*>(self)->all;
        all.resize(size);
        return all.data();
    }

    bytes all;
};

/// All requests, with memory whose bounds the address sanitizer knows, except for the pinned memory.
class every_request {
public:
    /// More than the small copies, so that it takes several pieces.
    static constexpr std::size_t many = 76800;
    static constexpr std::size_t few = 100;

    explicit every_request(std::span<float> pinned)
        : pinned_read(detail::read_op<float>{x.first(few), pinned.data(), few})
    {
        for (auto& r : data)
            r.resize(many);
        upload_many.emplace(data[0]);
        upload_few.emplace(std::span(data[0]).first(few));
        write_many.emplace(detail::write_op<float>{x, data[0].data(), many});
        read_many.emplace(detail::read_op<float>{y, data[1].data(), many});
        write_few.emplace(detail::write_op<float>{x.first(few), data[0].data(), few});
        read_few.emplace(detail::read_op<float>{x.first(few), little.data(), few});
        all = {&fill,       &dot,        &allocate,    &*write_few,   &*read_few,   &pinned_read,  &*write_many,
               &*read_many, &fill_again, &collect_few, &collect_many, &*upload_few, &*upload_many, &gemm,
               &iamax,      &load,       &run,         &run_large,    &unload};
    }

    /// The memory of the plan's instance, and its constant.
    static coaccel::any_ref plan_memory() { return buffer(3, 2 * many, coaccel::dtype::u8); }
    static coaccel::any_ref plan_constant() { return buffer(4, test::small_plan_constant, coaccel::dtype::u8); }

    std::vector<detail::request*> all;

private:
    const floats x = floats::from_raw(buffer(1, many));
    const floats y = floats::from_raw(buffer(2, many));
    std::array<std::vector<float>, 2> data;
    std::vector<float> little = std::vector<float>(few);
    gathered first, second;
    const std::shared_ptr<const detail::plan_data> plan = test::small_plan();
    load_plan load{*plan, {plan_memory(), plan_constant()}};
    run_plan run{plan_memory(), 0}, run_large{plan_memory(), many};
    one_op<detail::plan_unload_op> unload{{.instance = 1, .chain = test::plan_chain}};
    one_op<coaccel::memory::fill<float>> fill{{x, 1}}, fill_again{{x, 1}};
    one_op<coaccel::blas::dot<float>> dot{{.x = x.first(8), .y = y.first(8), .n = 8}};
    one_op<coaccel::blas::iamax<float>> iamax{{.x = x.first(8), .n = 8}};
    one_op<coaccel::blas::gemm<float>> gemm{
        {.a = x.first(4), .b = x.subspan(4, 4), .c = y.first(4), .m = 2, .n = 2, .k = 2}};
    one_op<detail::allocate_op> allocate{{.count = few, .type = coaccel::dtype::f32}};
    one_op<detail::collect_op<float>> collect_few{{.src = y.first(few), .sink = first.sink()}};
    one_op<detail::collect_op<float>> collect_many{{.src = y, .sink = second.sink()}};
    one_op<detail::read_op<float>> pinned_read;
    std::optional<one_op<detail::write_op<float>>> write_few, write_many;
    std::optional<one_op<detail::read_op<float>>> read_few, read_many;
    std::optional<upload> upload_few, upload_many;
};

} // namespace fuzz

#endif
