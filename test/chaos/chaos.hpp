#ifndef COACCEL_TEST_CHAOS_CHAOS_HPP
#define COACCEL_TEST_CHAOS_CHAOS_HPP

#include <coaccel/coaccel.hpp>

#include <boost/asio.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

namespace chaos {

namespace asio = coaccel::asio;

/// Counts unfinished items, and can wait until all have finished.
class outstanding {
public:
    void add(std::uint64_t n = 1) noexcept
    {
        all_ += n;
        left_ += n;
    }

    void remove()
    {
        if (--left_ > 0)
            return;
        const std::scoped_lock lock(mutex_);
        none_left_.notify_all();
    }

    /// Precondition: no more items are added.
    void wait_until_over(std::chrono::steady_clock::time_point end)
    {
        std::unique_lock lock(mutex_);
        none_left_.wait_until(lock, end, [this] { return left_ == 0; });
    }

    std::uint64_t left() const noexcept { return left_; }
    std::uint64_t over() const noexcept { return all_ - left_; }

private:
    std::atomic<std::uint64_t> left_{0};
    std::atomic<std::uint64_t> all_{0};
    std::mutex mutex_;
    std::condition_variable none_left_;
};

struct tally {
    outstanding clients;
    outstanding ops;
    std::atomic<std::uint64_t> succeeded{0};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> unexpected{0};
    std::atomic<std::uint64_t> out_of_memory{0};
    std::atomic<std::uint64_t> shutdowns{0};
    /// Devices that did not recover.
    std::atomic<std::uint64_t> stuck{0};
};

class dice {
public:
    explicit dice(std::uint32_t seed) : random_(seed) {}

    /// From 0 to n - 1.
    std::uint32_t pick(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }

private:
    std::minstd_rand random_;
};

/// Holds a device; when the device is shut down or fails, another replaces it.
class seat {
public:
    explicit seat(const coaccel::device_options& o) : options(o) { options.host.injector = &injector; }

    coaccel::device current()
    {
        const std::scoped_lock lock(mutex_);
        return device_;
    }

    coaccel::device replace(coaccel::device d)
    {
        const std::scoped_lock lock(mutex_);
        return std::exchange(device_, std::move(d));
    }

    /// Odd while the replies of the device are being forged, so that its results cannot be checked.
    std::uint32_t epoch() const noexcept { return epoch_.load(); }
    void next_epoch() noexcept { ++epoch_; }
    bool honest_since(std::uint32_t epoch) const noexcept { return epoch % 2 == 0 && epoch_.load() == epoch; }

    coaccel::fault_injector injector;
    coaccel::device_options options;

private:
    std::mutex mutex_;
    coaccel::device device_;
    std::atomic<std::uint32_t> epoch_{0};
};

/// The devices of a run, and the faults injected into them.
class scenario {
public:
    virtual ~scenario() = default;

    virtual coaccel::device_options options_for(int seat) const = 0;
    /// The maximum number of elements of a copy.
    virtual std::uint32_t most_elements() const noexcept = 0;
    virtual std::chrono::milliseconds longest_pause() const noexcept = 0;

    /// Called before there is any device; returns false if there can be none.
    virtual bool begin() { return true; }

    /// Injects one fault.
    virtual asio::awaitable<void> strike(seat& s, tally& counts, dice& random) = 0;

    /// The number of faults besides those of the injectors.
    virtual std::uint64_t faults() const noexcept { return 0; }

    /// Prints how contexts ended, if known: words of the form "what=count ".
    virtual void print_ends() const {}
    /// Whether each kind of end was recognised correctly.
    virtual bool saw_all_ends() const { return true; }

    /// The number of leaked resources after all devices are destroyed.
    virtual std::uint64_t left() { return 0; }
};

/// The options that the devices of all scenarios share.
coaccel::device_options common_options(int seat);

std::unique_ptr<scenario> in_process_scenario();
std::unique_ptr<scenario> worker_scenario();

asio::awaitable<void> pause(std::chrono::milliseconds time);

/// Ensures that the seat holds a working device.
asio::awaitable<void> renew(seat& s, tally& counts);

/// Coroutines that use the seat until `stop`, with checked results.
class client {
public:
    client(seat& where, tally& counts, std::uint32_t seed, std::uint32_t most_elements, const std::atomic<bool>& stop)
        : where_(where), counts_(counts), dice_(seed), most_elements_(most_elements), stop_(stop)
    {}

    asio::awaitable<void> run();

private:
    void count(const coaccel::error_code& ec, std::uint32_t epoch);
    void judge(std::uint64_t wrong);

    /// Counts a result; returns true for success.
    template <class T>
    bool take(const coaccel::result<T>& r)
    {
        count(r ? coaccel::error_code() : r.error(), epoch_);
        return r.has_value();
    }

    std::uint32_t pick(std::uint32_t n) { return dice_.pick(n); }
    coaccel::exec_options how();
    asio::awaitable<bool> round(coaccel::device gpu);
    asio::awaitable<bool> add(coaccel::device gpu, coaccel::buffer<float> x, coaccel::buffer<float> y, float value);
    asio::awaitable<bool> reduce(coaccel::device gpu, coaccel::buffer<float> x, float value);
    asio::awaitable<bool> cancelled(coaccel::device gpu, coaccel::buffer<float> x);
    asio::awaitable<bool> unawaited(coaccel::device gpu, coaccel::buffer<float> x, coaccel::buffer<float> y);
    asio::awaitable<bool> multiply(coaccel::device gpu);
    asio::awaitable<bool> there_and_back(coaccel::device gpu);
    asio::awaitable<bool> too_much(coaccel::device gpu);

    seat& where_;
    tally& counts_;
    dice dice_;
    const std::uint32_t most_elements_;
    const std::atomic<bool>& stop_;
    std::uint32_t epoch_ = 0;
};

} // namespace chaos

#endif
