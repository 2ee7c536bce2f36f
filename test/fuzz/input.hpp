#ifndef COACCEL_TEST_FUZZ_INPUT_HPP
#define COACCEL_TEST_FUZZ_INPUT_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace fuzz {

using bytes = std::vector<std::byte>;

/// A violated requirement, which the fuzzer treats like a crash: it ends the run and keeps the input.
inline void require(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

/// An input that is consumed from its beginning. After its end it yields zeros.
class input {
public:
    input(const std::uint8_t* data, std::size_t size) noexcept : left_(std::as_bytes(std::span(data, size))) {}

    bool empty() const noexcept { return left_.empty(); }

    template <std::integral T>
    T take() noexcept
    {
        T value{};
        const auto n = std::min(sizeof(T), left_.size());
        if (n > 0)
            std::memcpy(&value, left_.data(), n);
        left_ = left_.subspan(n);
        return value;
    }

    /// A length and that many bytes, or as many as are left.
    std::span<const std::byte> take_record() noexcept
    {
        const auto n = std::min<std::size_t>(take<std::uint16_t>(), left_.size());
        const auto record = left_.first(n);
        left_ = left_.subspan(n);
        return record;
    }

    std::span<const std::byte> take_rest() noexcept { return std::exchange(left_, {}); }

private:
    std::span<const std::byte> left_;
};

/// Writes data that an input reads.
class script {
public:
    template <std::integral T>
    script& put(T value)
    {
        const auto raw = std::as_bytes(std::span(&value, 1));
        all_.insert(all_.end(), raw.begin(), raw.end());
        return *this;
    }

    script& put_record(std::span<const std::byte> record)
    {
        put(static_cast<std::uint16_t>(record.size()));
        all_.insert(all_.end(), record.begin(), record.end());
        return *this;
    }

    script& put_rest(std::span<const std::byte> rest)
    {
        all_.insert(all_.end(), rest.begin(), rest.end());
        return *this;
    }

    std::span<const std::byte> all() const noexcept { return all_; }

private:
    bytes all_;
};

// The steps of the targets: a byte, then the data of the step. An invalid byte counts as the first step.

/// Steps of a worker's parent in one turn of the worker.
enum class request_step : std::uint8_t { record, position, answers_taken, scribble, deaf, idle };

/// Steps of a worker, or of a user of its device.
enum class reply_step : std::uint8_t {
    record,
    right_answer,
    answer,
    submit,
    release,
    idle,
    position,
    requests_taken,
    scribble,
    gauge
};

/// How a worker starts: warmed up; with an opening that is not part of the input.
enum request_flag : std::uint8_t { standby = 1, opened = 2 };

/// How a session with a worker starts and ends.
enum reply_flag : std::uint8_t { greets = 1, is_dropped = 2, dies = 4 };

/// How a file with a plan is read: with a header that fits; without verifying its contents.
enum file_flag : std::uint8_t { sealed = 1, unchecked = 2 };

enum class ring_step : std::uint8_t { write, read, sleep, written, taken, sleeping, length, poke };

template <class Step>
Step take_step(input& in, Step last) noexcept
{
    const auto n = in.take<std::uint8_t>();
    return n <= static_cast<std::uint8_t>(last) ? static_cast<Step>(n) : Step{};
}

/// The identity of the contexts of all targets.
inline constexpr std::uint32_t device = 7;
inline constexpr std::uint32_t generation = 3;

/// The staging memory of the worker that receives requests.
inline constexpr std::size_t staging_size = std::size_t(16) << 10;

} // namespace fuzz

#endif
