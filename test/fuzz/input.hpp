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
#include <vector>

namespace fuzz {

using bytes = std::vector<std::byte>;

/// What a fuzzer has to tell apart from a crash; it ends the run and keeps the input.
inline void require(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

/// An input, taken apart from its beginning. Behind its end there are zeros.
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

    /// A length and so many bytes, or what there is of them.
    std::span<const std::byte> take_record() noexcept
    {
        const auto n = std::min<std::size_t>(take<std::uint16_t>(), left_.size());
        const auto record = left_.first(n);
        left_ = left_.subspan(n);
        return record;
    }

private:
    std::span<const std::byte> left_;
};

/// Writes what an input reads.
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

    std::span<const std::byte> all() const noexcept { return all_; }

private:
    bytes all_;
};

// The steps of the targets: a byte, then what the step needs. A byte that is no step counts as the first of them.

/// Of what the parent of a worker does in one turn of the worker.
enum class request_step : std::uint8_t { record, position, answers_taken, scribble, deaf, idle };

/// Of what a worker does, or somebody who uses its device.
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

/// How a worker begins: warmed up; with an opening that is not part of the input.
enum request_flag : std::uint8_t { standby = 1, opened = 2 };

/// How a conversation with a worker begins, and ends.
enum reply_flag : std::uint8_t { greets = 1, is_dropped = 2, dies = 4 };

enum class ring_step : std::uint8_t { write, read, sleep, written, taken, sleeping, length, poke };

template <class Step>
Step take_step(input& in, Step last) noexcept
{
    const auto n = in.take<std::uint8_t>();
    return n <= static_cast<std::uint8_t>(last) ? static_cast<Step>(n) : Step{};
}

/// Of the contexts of all targets.
inline constexpr std::uint32_t device = 7;
inline constexpr std::uint32_t generation = 3;

/// Of the worker that takes requests.
inline constexpr std::size_t staging_size = std::size_t(16) << 10;

} // namespace fuzz

#endif
