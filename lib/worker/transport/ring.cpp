#include "worker/transport/ring.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace coaccel::worker {
namespace {

using length_type = std::uint32_t;

// Records begin at multiples of this, so that the end of the ring never splits a length.
constexpr std::uint64_t grain = 8;

constexpr std::uint64_t room_for(std::size_t length) noexcept
{
    return (sizeof(length_type) + length + grain - 1) & ~(grain - 1);
}

[[maybe_unused]] bool suitable(std::span<const std::byte> data) noexcept
{
    return data.size() >= 4096 && data.size() <= (std::size_t(1) << 32) && std::has_single_bit(data.size()) &&
           reinterpret_cast<std::uintptr_t>(data.data()) % grain == 0;
}

std::size_t place(std::uint64_t position, std::size_t capacity) noexcept
{
    return static_cast<std::size_t>(position & (capacity - 1));
}

void copy_in(std::span<std::byte> data, std::uint64_t position, std::span<const std::byte> from) noexcept
{
    const auto at = place(position, data.size());
    const auto first = std::min(from.size(), data.size() - at);
    std::memcpy(data.data() + at, from.data(), first);
    std::memcpy(data.data(), from.data() + first, from.size() - first);
}

void copy_out(std::span<const std::byte> data, std::uint64_t position, std::span<std::byte> to) noexcept
{
    const auto at = place(position, data.size());
    const auto first = std::min(to.size(), data.size() - at);
    std::memcpy(to.data(), data.data() + at, first);
    std::memcpy(to.data() + first, data.data(), to.size() - first);
}

// Volatile: the compiler must not read it again after the checks, because the peer may have changed it.
length_type copy_length(std::span<const std::byte> data, std::uint64_t position) noexcept
{
    return *reinterpret_cast<const volatile length_type*>(data.data() + place(position, data.size()));
}

} // namespace

ring_writer::ring_writer(ring_control& control, std::span<std::byte> data) noexcept : control_(&control), data_(data)
{
    BOOST_ASSERT(suitable(data));
}

written ring_writer::write(std::span<const std::byte> record) noexcept
{
    BOOST_ASSERT(!record.empty() && record.size() <= max_record());
    if (corrupted_)
        return written::corrupted;
    const auto room = room_for(record.size());
    if (data_.size() - (written_ - seen_taken_) < room) {
        const auto taken = control_->taken.load(std::memory_order_acquire);
        // Unsigned arithmetic: a position before the last one, or after ours, gives a huge difference.
        if (taken - seen_taken_ > written_ - seen_taken_ || taken % grain != 0) {
            corrupted_ = true;
            return written::corrupted;
        }
        seen_taken_ = taken;
        if (data_.size() - (written_ - taken) < room)
            return written::full;
    }
    const auto length = static_cast<length_type>(record.size());
    std::memcpy(data_.data() + place(written_, data_.size()), &length, sizeof(length));
    copy_in(data_, written_ + sizeof(length), record);
    written_ += room;
    control_->written.store(written_, std::memory_order_release);
    return written::yes;
}

// Every change of `sleeping` is an exchange, so the exchanges of the two sides always synchronise: either this one
// finds the flag set, or the reader's later exchange makes the record visible before the reader sleeps. A plain store
// would break the chain and need fences.
bool ring_writer::wants_bell() noexcept
{
    return control_->sleeping.exchange(0, std::memory_order_acq_rel) != 0;
}

ring_reader::ring_reader(ring_control& control, std::span<const std::byte> data) noexcept
    : control_(&control), data_(data)
{
    BOOST_ASSERT(suitable(data));
}

result<bool> ring_reader::read(std::vector<std::byte>& into)
{
    if (corrupted_)
        return corrupted_;
    if (taken_ == seen_written_) {
        const auto written = control_->written.load(std::memory_order_acquire);
        if (written == taken_)
            return false;
        if (written - taken_ > data_.size() || written % grain != 0)
            return condemn("the position of the writer of a ring is impossible");
        seen_written_ = written;
    }
    const auto length = copy_length(data_, taken_);
    if (length == 0 || length > max_record() || room_for(length) > seen_written_ - taken_)
        return condemn("the length of a record of a ring is impossible");
    into.resize(length);
    copy_out(data_, taken_ + sizeof(length), into);
    taken_ += room_for(length);
    control_->taken.store(taken_, std::memory_order_release);
    return true;
}

bool ring_reader::may_sleep() noexcept
{
    if (corrupted_ || taken_ != seen_written_)
        return false;
    control_->sleeping.exchange(1, std::memory_order_acq_rel);
    if (control_->written.load(std::memory_order_acquire) == taken_)
        return true;
    awake();
    return false;
}

void ring_reader::awake() noexcept
{
    control_->sleeping.exchange(0, std::memory_order_acq_rel);
}

error_code ring_reader::condemn(const char* why)
{
    corrupted_ = make_error_with_message(errc::worker_corrupted, why);
    return corrupted_;
}

} // namespace coaccel::worker
