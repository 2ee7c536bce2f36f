#ifndef COACCEL_WORKER_PARENT_REPLY_SLOTS_HPP
#define COACCEL_WORKER_PARENT_REPLY_SLOTS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace coaccel::worker {

/// What the worker has been asked for and has not replied to, by number. A number is not used twice, so that an invalid
/// reply is not mistaken for one to a later request.
template <class T>
class reply_slots {
public:
    /// Returns the number under which the worker replies.
    std::uint64_t add(T what)
    {
        std::uint32_t at = 0;
        if (free_.empty()) {
            at = static_cast<std::uint32_t>(slots_.size());
            slots_.emplace_back();
        } else {
            at = free_.back();
            free_.pop_back();
        }
        slot& s = slots_[at];
        ++s.serial;
        s.what = std::move(what);
        ++count_;
        return std::uint64_t(s.serial) << 32 | at;
    }

    /// Null if nothing is awaited under this number.
    T* find(std::uint64_t number) noexcept
    {
        const auto at = static_cast<std::uint32_t>(number);
        if (at >= slots_.size() || slots_[at].serial != number >> 32 || !slots_[at].what)
            return nullptr;
        return &*slots_[at].what;
    }

    /// Preconditions: find(number) is not null.
    T take(std::uint64_t number)
    {
        const auto at = static_cast<std::uint32_t>(number);
        T taken = std::move(*slots_[at].what);
        slots_[at].what.reset();
        free_.push_back(at);
        --count_;
        return taken;
    }

    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }

    /// Calls `f` for each.
    template <class F>
    void for_each(F f)
    {
        for (slot& s : slots_)
            if (s.what)
                f(*s.what);
    }

private:
    struct slot {
        std::uint32_t serial = 0;
        std::optional<T> what{};
    };

    std::vector<slot> slots_;
    std::vector<std::uint32_t> free_;
    std::size_t count_ = 0;
};

} // namespace coaccel::worker

#endif
