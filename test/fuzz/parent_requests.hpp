#ifndef COACCEL_TEST_FUZZ_PARENT_REQUESTS_HPP
#define COACCEL_TEST_FUZZ_PARENT_REQUESTS_HPP

#include "seeds.hpp"

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <array>
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
        all = {&fill,         &dot,         &allocate,     &*write_few, &*read_few,
               &pinned_read,  &*write_many, &*read_many,   &fill_again, &collect_few,
               &collect_many, &*upload_few, &*upload_many, &gemm,       &iamax};
    }

    std::vector<detail::request*> all;

private:
    const floats x = floats::from_raw(buffer(1, many));
    const floats y = floats::from_raw(buffer(2, many));
    std::array<std::vector<float>, 2> data;
    std::vector<float> little = std::vector<float>(few);
    gathered first, second;
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
