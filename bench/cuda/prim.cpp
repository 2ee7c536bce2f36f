#include "op_times.hpp"
#include "random.hpp"
#include "rows.hpp"

#ifdef COACCEL_HAS_CUB
#include "cub_calls.hpp"
#endif

#include <coaccel/ops/prim.hpp>

#include <string>

namespace coaccel::bench {
namespace {

constexpr std::size_t elements = std::size_t(64) << 20;
constexpr std::size_t bytes = elements * sizeof(float);

void check_equal(const std::vector<float>& ours, const std::vector<float>& theirs, const std::string& name)
{
    if (ours != theirs)
        throw failure(name + ": the results differ");
}

std::vector<float> content(const raw_gpu& raw, const raw_memory& of, std::size_t count)
{
    std::vector<float> made(count);
    const auto inside = raw.enter();
    raw.check(raw.copy_out(made.data(), of.address(), count * sizeof(float)), "cuMemcpyDtoH");
    return made;
}

/// Gigabytes per second of a copy in device memory and of an op, which each move this many bytes.
pair bandwidths(pair seconds, double op_bytes, double copy_bytes)
{
    return {op_bytes / seconds.ours * 1e-9, copy_bytes / seconds.theirs * 1e-9};
}

} // namespace

/// Elementwise ops against a copy in device memory, both in bytes that are read or written per second.
void transform_rows(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const auto a = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(elements, 1)));
    const auto b = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(elements, 2)));
    const auto c = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(elements));
    const auto halves = ours.get<buffer<half>>(ours.gpu().async_alloc<half>(elements));
    const raw_memory from(s.raw, bytes);
    const raw_memory to(s.raw, bytes);
    {
        const auto inside = s.raw.enter();
        const auto data = random_floats(elements, 3);
        s.raw.check(s.raw.copy_in(from.address(), data.data(), bytes), "cuMemcpyHtoD");
    }
    const auto copy = [&] {
        s.raw.check(s.raw.api().cuMemcpyDtoDAsync(to.address(), from.address(), bytes, s.raw.stream()),
                    "cuMemcpyDtoDAsync");
    };
    const auto add = [&](const char* name, const auto& op, double op_bytes) {
        const auto all = awaited_against(ours, op, s.raw, of_large_op, copy);
        table.push_back(
            at_least(name, bandwidths(all.middle(), op_bytes, 2.0 * double(bytes)), 0.9, "GB/s p50", ">= 0.9"));
    };
    add("prim_transform", prim::binary<float>{.a = a, .b = b, .c = c}, 3.0 * double(bytes));
    add("prim_unary", prim::unary<float>{.x = a, .y = c, .what = prim::real_function::exp}, 2.0 * double(bytes));
    add("prim_cast_f16", prim::cast<float, half>{.x = a, .y = halves}, 1.5 * double(bytes));
    constexpr std::uint64_t columns = 1024;
    add("prim_softmax", prim::softmax<float>{.x = a, .y = c, .n = columns, .outer = elements / columns},
        2.0 * double(bytes));
}

/// The cost of a tiny op beyond the launch of an empty kernel.
void prim_tiny_row(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const auto x = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(256, 1)));
    const auto y = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(256));
    const prim::unary<float> op{.x = x, .y = y, .what = prim::real_function::exp};
    add_small_op(table, "prim_tiny", ours, op, s.raw, [&] { s.raw.launch(); });
}

/// The first use of a kernel: from the cache on disk, against compiling it.
void prim_first_use_row(const stage& s, rows& table)
{
    constexpr int rounds = 5;
    std::vector<double> cached;
    std::vector<double> compiled;
    for (int i = 0; i < rounds; ++i)
        for (auto* times : {&compiled, &cached}) {
            const std::string folder = s.folder + "/prim_row_" + std::to_string(i);
            setenv("COACCEL_CACHE_DIR", folder.c_str(), 1);
            our_gpu ours(s.folder);
            const auto x = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(4096, 1)));
            const auto y = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(4096));
            const auto began = clock::now();
            ours.get<void>(ours.gpu().async_exec(prim::sort<float>{.x = x, .y = y, .n = 4096}));
            times->push_back(seconds_since(began));
        }
    unsetenv("COACCEL_CACHE_DIR");
    const pair took{median(cached), median(compiled)};
    table.push_back(at_most("prim_first_use", scaled(took, to_ms), 0.05, "ms", "<= 0.05"));
}

#ifdef COACCEL_HAS_CUB

namespace {

/// An algorithm of CUB on 64 M random floats, with the memory that it needs.
class raw_cub {
public:
    raw_cub(const raw_gpu& raw, cub_algorithm which)
        : raw_(raw), which_(which), x_(raw, bytes), y_(raw, bytes), values_(raw, 2 * bytes), sorted_(raw, 2 * bytes),
          temporary_(raw, temporary_bytes())
    {
        const auto inside = raw.enter();
        const auto data = random_floats(elements, 1);
        raw.check(raw.copy_in(x_.address(), data.data(), bytes), "cuMemcpyHtoD");
    }

    void operator()() { call(temporary_.pointer(), temporary_bytes_); }
    std::vector<float> result(std::size_t count) const { return content(raw_, y_, count); }

private:
    std::size_t temporary_bytes()
    {
        const auto inside = raw_.enter();
        call(nullptr, temporary_bytes_);
        return temporary_bytes_;
    }
    void call(void* temporary, std::size_t& size) const
    {
        const cub_arrays on{static_cast<const float*>(x_.pointer()), static_cast<float*>(y_.pointer()),
                            static_cast<const std::uint64_t*>(values_.pointer()),
                            static_cast<std::uint64_t*>(sorted_.pointer()), elements};
        if (const char* failed = call_cub(which_, on, temporary, size, raw_.stream()))
            throw failure(std::string("CUB: ") + failed);
    }

    const raw_gpu& raw_;
    const cub_algorithm which_;
    raw_memory x_;
    raw_memory y_;
    raw_memory values_;
    raw_memory sorted_;
    std::size_t temporary_bytes_ = 0;
    raw_memory temporary_;
};

} // namespace

void cub_rows(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const auto x = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(elements, 1)));
    const auto y = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(elements));
    const auto values =
        ours.get<buffer<std::uint64_t>>(ours.gpu().async_alloc<std::uint64_t>(elements, memory_init::zero));
    const auto sorted = ours.get<buffer<std::uint64_t>>(ours.gpu().async_alloc<std::uint64_t>(elements));
    const auto add = [&](const std::string& name, cub_algorithm which, const auto& op, double goal,
                         const std::string& goal_text) {
        raw_cub theirs(s.raw, which);
        if (goal_text.empty()) {
            const auto all = awaited_against(ours, op, s.raw, of_large_op, [&] { theirs(); });
            table.push_back(without_goal(name, scaled(all.middle(), to_ms), "ms p50"));
        } else {
            add_large_op(table, name, ours, op, s.raw, goal, goal_text, [&] { theirs(); });
        }
        if (which == cub_algorithm::sort_keys || which == cub_algorithm::sort_pairs)
            check_equal(ours.get<std::vector<float>>(ours.gpu().async_download(y)), theirs.result(elements), name);
    };
    add("prim_reduce", cub_algorithm::sum, prim::reduce<float>{.x = x, .y = y.subspan(0, 1)}, 1.05, "<= 1.05");
    add("prim_scan", cub_algorithm::inclusive_sum, prim::scan<float>{.x = x, .y = y, .n = elements}, 0, "");
    add("prim_sort", cub_algorithm::sort_keys, prim::sort<float>{.x = x, .y = y, .n = elements}, 1.3, "<= 1.3");
    add("prim_sort_pairs", cub_algorithm::sort_pairs,
        prim::sort_pairs<float>{.keys = x, .values = values, .sorted_keys = y, .sorted_values = sorted, .n = elements},
        1.3, "<= 1.3");
}

#else

void cub_rows(const stage&, rows&)
{
    throw failure("built without nvcc, which compiles CUB");
}

#endif

} // namespace coaccel::bench
