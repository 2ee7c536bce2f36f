#ifndef COACCEL_DEVICE_PINNED_CALLS_HPP
#define COACCEL_DEVICE_PINNED_CALLS_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/device/detail/pinned_compile_requests.hpp>

#include <memory>

namespace coaccel::detail {

/// The calls of a device that wait for pinned memory.
class pinned_calls {
public:
    bool empty() const noexcept { return waiting_.empty(); }
    void add(pinned_call& call) noexcept { waiting_.push_back(call); }
    void remove(pinned_call& call) noexcept { waiting_.remove(call); }
    void take_all(async_op_list& out) noexcept { out.append(waiting_); }

    /// Calls `complete(call, error_code)` for each call that has its memory, or that cannot have it. First come, first
    /// served, so that small requests cannot overtake a large one forever.
    template <class Complete>
    void serve(const std::shared_ptr<pinned_memory>& from, Complete complete)
    {
        while (!waiting_.empty()) {
            auto& call = static_cast<pinned_call&>(*waiting_.front());
            error_code ec = problem(call);
            if (!ec) {
                const auto memory = from->try_allocate(*call.wanted);
                if (memory && !memory.value())
                    return;
                if (memory) {
                    call.owner = from;
                    call.memory = memory.value();
                } else {
                    ec = memory.error();
                }
            }
            waiting_.pop_front();
            complete(call, ec);
        }
    }

private:
    static error_code problem(const pinned_call& call) noexcept
    {
        if (!call.wanted)
            return op_error(errc::size_overflow, "memory.pinned", {"the number of bytes overflows 64 bits"});
        return *call.wanted == 0 ? is_zero("memory.pinned", "count") : error_code();
    }

    async_op_list waiting_;
};

} // namespace coaccel::detail

#endif
