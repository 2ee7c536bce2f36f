#include "chaos.hpp"

#include <cstdio>
#include <vector>

namespace chaos {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

// The errors that may occur here.
bool expected(const error_code& ec)
{
    return ec == fault::context_lost || ec == fault::busy || ec == fault::stopped || ec == errc::device_failed ||
           ec == asio::error::operation_aborted;
}

// Small whole numbers: sums of products are exact, in any order and with any rounding.
std::vector<float> some_numbers(std::size_t n, std::uint32_t seed)
{
    std::vector<float> v(n);
    for (std::size_t i = 0; i < n; ++i)
        v[i] = static_cast<float>((i * 7 + seed) % 101);
    return v;
}

} // namespace

asio::awaitable<void> pause(std::chrono::milliseconds time)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<void> client::run()
{
    while (!stop_.load(std::memory_order_relaxed)) {
        epoch_ = where_.epoch();
        const bool fine = co_await round(where_.current());
        // Back off, so that a device that is down is not overloaded.
        if (!fine)
            co_await pause(1ms);
    }
    counts_.clients.remove();
}

void client::count(const error_code& ec, std::uint32_t epoch)
{
    if (!ec)
        ++counts_.succeeded;
    else if (ec == errc::out_of_memory && where_.honest_since(epoch))
        ++counts_.out_of_memory;
    else if (!expected(ec) && where_.honest_since(epoch) && counts_.unexpected++ < 10)
        std::fprintf(stderr, "unexpected: %s\n", ec.message().c_str());
    counts_.ops.remove();
}

void client::judge(std::uint64_t wrong)
{
    if (wrong > 0 && where_.honest_since(epoch_))
        counts_.wrong += wrong;
}

exec_options client::how()
{
    exec_options o;
    o.priority = static_cast<priority>(pick(3));
    if (pick(4) == 0)
        o.deadline = steady_clock::now() + std::chrono::microseconds(pick(3000));
    if (pick(8) == 0)
        o.lane = static_cast<int>(pick(4));
    if (pick(16) == 0)
        o.when_full = when_full::fail;
    return o;
}

asio::awaitable<bool> client::round(device gpu)
{
    if (pick(32) == 0)
        co_return co_await too_much(gpu);
    const auto what = pick(6);
    if (what == 0)
        co_return co_await multiply(gpu);
    if (what == 1)
        co_return co_await there_and_back(gpu);
    const std::size_t n = 1 + pick(2000);
    const auto value = static_cast<float>(1 + pick(100));
    const std::vector<float> data(n, value);
    counts_.ops.add();
    auto x = co_await gpu.async_upload(data);
    if (!take(x))
        co_return false;
    counts_.ops.add();
    auto y = co_await gpu.async_alloc<float>(n, memory_init::zero);
    if (!take(y))
        co_return false;
    switch (what) {
    case 2: co_return co_await add(gpu, std::move(x).value(), std::move(y).value(), value);
    case 3: co_return co_await reduce(gpu, std::move(x).value(), value);
    case 4: co_return co_await cancelled(gpu, std::move(x).value());
    default: co_return co_await unawaited(gpu, std::move(x).value(), std::move(y).value());
    }
}

asio::awaitable<bool> client::add(device gpu, buffer<float> x, buffer<float> y, float value)
{
    const auto twice = blas::axpy<float>{.x = x, .y = y, .n = x.size(), .alpha = 2.0f};
    counts_.ops.add();
    auto summed = co_await gpu.with(how()).async_exec(seq(twice, twice));
    if (!take(summed))
        co_return false;
    // Released while the download may still wait for it.
    x.reset();
    counts_.ops.add();
    auto out = co_await gpu.async_download(y);
    if (!take(out))
        co_return false;
    std::uint64_t wrong = 0;
    for (const float v : out.value())
        wrong += v != 4 * value;
    judge(wrong);
    co_return true;
}

asio::awaitable<bool> client::reduce(device gpu, buffer<float> x, float value)
{
    counts_.ops.add();
    auto sum = co_await gpu.with(how()).async_exec(blas::asum<float>{.x = x, .n = x.size()});
    if (!take(sum))
        co_return false;
    judge(sum.value() != value * static_cast<float>(x.size()));
    co_return true;
}

asio::awaitable<bool> client::cancelled(device gpu, buffer<float> x)
{
    const auto ex = co_await asio::this_coro::executor;
    // One strand for the signal and the handler, as Asio requires.
    auto strand = asio::make_strand(ex);
    auto signal = std::make_shared<asio::cancellation_signal>();
    auto on_answer = [self = this, epoch = epoch_, signal](error_code ec) { self->count(ec, epoch); };
    auto start = [gpu, x = std::make_shared<buffer<float>>(std::move(x)), options = how(), signal, strand,
                  on_answer]() {
        gpu.with(options).async_exec(
            memory::fill<float>{*x, 1.0f},
            asio::bind_cancellation_slot(signal->slot(), asio::bind_executor(strand, on_answer)));
    };
    counts_.ops.add();
    asio::post(strand, start);
    constexpr asio::cancellation_type types[] = {asio::cancellation_type::total, asio::cancellation_type::partial,
                                                 asio::cancellation_type::terminal};
    asio::post(strand, [signal, type = types[pick(3)]] { signal->emit(type); });
    co_return true;
}

asio::awaitable<bool> client::unawaited(device gpu, buffer<float> x, buffer<float> y)
{
    auto on_answer = [self = this, epoch = epoch_](error_code ec) { self->count(ec, epoch); };
    for (int i = 0; i < 8; ++i) {
        counts_.ops.add();
        gpu.with(how()).async_exec(memory::copy<float>{x, y}, on_answer);
    }
    co_return true;
}

asio::awaitable<bool> client::multiply(device gpu)
{
    const std::size_t m = 1 + pick(12), n = 1 + pick(12), k = 1 + pick(12);
    const auto a = some_numbers(m * k, pick(100));
    const auto b = some_numbers(k * n, pick(100));
    counts_.ops.add(3);
    auto x = co_await gpu.async_upload(a);
    auto y = co_await gpu.async_upload(b);
    auto z = co_await gpu.async_alloc<float>(m * n);
    const bool first = take(x), second = take(y), third = take(z);
    if (!first || !second || !third)
        co_return false;
    counts_.ops.add();
    const blas::gemm<float> op{.a = x.value(), .b = y.value(), .c = z.value(), .m = m, .n = n, .k = k};
    auto done = co_await gpu.with(how()).async_exec(op);
    if (!take(done))
        co_return false;
    counts_.ops.add();
    auto out = co_await gpu.async_download(z.value());
    if (!take(out))
        co_return false;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::size_t l = 0; l < k; ++l)
                sum += a[i + l * m] * b[l + j * k];
            wrong += out.value()[i + j * m] != sum;
        }
    judge(wrong);
    co_return true;
}

asio::awaitable<bool> client::there_and_back(device gpu)
{
    const std::size_t n = 1 + pick(pick(8) == 0 ? most_elements_ : 2000);
    const std::vector<float> data = some_numbers(n, pick(1000));
    exec_options options = how();
    // The request uses no object that is lost with a context.
    options.retry = pick(2) == 0 ? retry::idempotent : retry::never;
    counts_.ops.add();
    auto x = co_await gpu.with(options).async_upload(data);
    if (!take(x))
        co_return false;
    const std::size_t half = n / 2;
    const auto other = some_numbers(half + 1, pick(1000));
    if (half > 0) {
        counts_.ops.add();
        auto over = co_await gpu.async_write(x.value().subspan(0, half), std::span<const float>(other).first(half));
        if (!take(over))
            co_return false;
    }
    std::vector<float> back(n, -1.0f);
    counts_.ops.add();
    auto got = co_await gpu.async_read(x.value(), std::span<float>(back));
    if (!take(got))
        co_return false;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i)
        wrong += back[i] != (i < half ? other[i] : data[i]);
    judge(wrong);
    co_return true;
}

asio::awaitable<bool> client::too_much(device gpu)
{
    const std::size_t n = where_.options.host.memory_limit / sizeof(float) + 1 + pick(1000);
    counts_.ops.add();
    auto x = co_await gpu.with(how()).async_alloc<float>(n);
    // No context has room for it.
    const bool made = take(x);
    judge(made);
    co_return !made && x.error() == errc::out_of_memory;
}

} // namespace chaos
