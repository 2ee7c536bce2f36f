#include "ours.hpp"
#include "random.hpp"
#include "rows.hpp"

#include <algorithm>

namespace coaccel::bench {
namespace {

constexpr std::size_t block_bytes = std::size_t(64) << 20;
constexpr std::size_t block_floats = block_bytes / sizeof(float);
constexpr int rounds = 8;
constexpr int skip = 1;
constexpr int count = 6;

void same(std::span<const float> a, std::span<const float> b)
{
    if (!std::ranges::equal(a, b))
        throw failure("what came back is not what was sent");
}

template <class Copy>
void time_raw(const raw_gpu& raw, std::vector<double>& times, Copy copy)
{
    const auto inside = raw.enter();
    for (int i = 0; i < skip + count; ++i) {
        const auto began = clock::now();
        copy();
        const double took = seconds_since(began);
        if (i >= skip)
            times.push_back(took);
    }
}

/// Our copies in both directions between `target` and the two spans.
struct our_copies {
    our_gpu& ours;
    ref<float> target;
    std::span<const float> from;
    std::span<float> to;

    void in(std::vector<double>& times) const
    {
        auto start = [gpu = &ours.gpu(), t = target, d = from] { return gpu->async_write(t, d); };
        ours.run(1, [&] { return time_each(start, skip, count, &times); });
    }

    void out(std::vector<double>& times) const
    {
        auto start = [gpu = &ours.gpu(), t = target, d = to] { return gpu->async_read(t, d); };
        ours.run(1, [&] { return time_each(start, skip, count, &times); });
    }
};

asio::awaitable<void> alloc_and_release(const device* gpu, std::size_t elements, int pairs)
{
    for (int i = 0; i < pairs; ++i) {
        auto made = co_await gpu->async_alloc<float>(elements);
        if (!made)
            throw failure(made.error().message());
    }
}

} // namespace

void pinned_rows(const stage& s, rows& table)
{
    const auto data = random_floats(block_floats, 3);
    const raw_memory raw_block(s.raw, block_bytes);
    const raw_pinned raw_from(s.raw, block_floats);
    const raw_pinned raw_to(s.raw, block_floats);
    std::ranges::copy(data, raw_from.span().begin());

    our_gpu ours(s.folder);
    const auto block = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(block_floats));
    const auto from = ours.get<pinned_buffer<float>>(ours.gpu().async_alloc_pinned<float>(block_floats));
    const auto to = ours.get<pinned_buffer<float>>(ours.gpu().async_alloc_pinned<float>(block_floats));
    std::ranges::copy(data, from.begin());
    std::ranges::fill(to, 0.0f);

    const our_copies copies{ours, block.ref(), from.span(), to.span()};
    const auto in = collect(
        rounds, [&](auto& times) { copies.in(times); },
        [&](auto& times) {
            time_raw(s.raw, times, [&] {
                s.raw.check(s.raw.api().cuMemcpyHtoDAsync(raw_block.address(), raw_from.span().data(), block_bytes,
                                                          s.raw.stream()),
                            "cuMemcpyHtoDAsync");
                s.raw.synchronize();
            });
        });
    table.push_back(at_most("h2d_64m", scaled(in.middle(), to_ms), 1.03, "ms p50", "<= 1.03"));

    const auto out = collect(
        rounds, [&](auto& times) { copies.out(times); },
        [&](auto& times) {
            time_raw(s.raw, times, [&] {
                s.raw.check(s.raw.api().cuMemcpyDtoHAsync(raw_to.span().data(), raw_block.address(), block_bytes,
                                                          s.raw.stream()),
                            "cuMemcpyDtoHAsync");
                s.raw.synchronize();
            });
        });
    table.push_back(at_most("d2h_64m", scaled(out.middle(), to_ms), 1.03, "ms p50", "<= 1.03"));
    same(to.span(), data);
    same(raw_to.span(), data);
}

void pageable_rows(const stage& s, rows& table)
{
    const auto data = random_floats(block_floats, 4);
    std::vector<float> back(block_floats, 0.0f);
    const raw_memory raw_block(s.raw, block_bytes);

    our_gpu ours(s.folder);
    const auto block = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(block_floats));
    const our_copies copies{ours, block.ref(), data, back};
    const auto in = collect(
        rounds, [&](auto& times) { copies.in(times); },
        [&](auto& times) {
            time_raw(s.raw, times, [&] {
                s.raw.check(s.raw.copy_in(raw_block.address(), data.data(), block_bytes), "cuMemcpyHtoD");
            });
        });
    table.push_back(at_most("h2d_64m_pageable", scaled(in.middle(), to_ms), 1, "ms p50", "<= 1"));

    const auto out = collect(
        rounds, [&](auto& times) { copies.out(times); },
        [&](auto& times) {
            time_raw(s.raw, times, [&] {
                s.raw.check(s.raw.copy_out(back.data(), raw_block.address(), block_bytes), "cuMemcpyDtoH");
            });
        });
    table.push_back(at_most("d2h_64m_pageable", scaled(out.middle(), to_ms), 1, "ms p50", "<= 1"));

    std::ranges::fill(back, 0.0f);
    ours.get<void>(ours.gpu().async_read(block.ref(), std::span<float>(back)));
    same(back, data);
}

void alloc_row(const stage& s, rows& table)
{
    constexpr std::size_t bytes = std::size_t(1) << 20;
    constexpr int pairs = 3000;
    const raw_pool pool(s.raw);
    our_gpu ours(s.folder);
    const auto p = side_by_side(
        7,
        [&] {
            return ours.run(1, [&] { return alloc_and_release(&ours.gpu(), bytes / sizeof(float), pairs); }) / pairs;
        },
        [&] {
            const auto inside = s.raw.enter();
            const auto began = clock::now();
            for (int i = 0; i < pairs; ++i)
                pool.release(pool.allocate(bytes));
            const double took = seconds_since(began);
            s.raw.synchronize();
            return took / pairs;
        });
    table.push_back(at_most("alloc_free", scaled(p, to_us), 2, "us/pair", "<= 2"));
}

} // namespace coaccel::bench
