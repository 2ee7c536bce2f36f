#ifndef COACCEL_DEVICE_COMPILE_CALLS_HPP
#define COACCEL_DEVICE_COMPILE_CALLS_HPP

#include <coaccel/device/detail/pinned_compile_requests.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// The calls of a device that wait for the compiler.
class compile_calls {
public:
    bool empty() const noexcept { return calls_.empty(); }
    void add(compile_call& call) { calls_.push_back(&call); }
    void remove(compile_call& call) noexcept { std::erase(calls_, &call); }

    void take_all(async_op_list& out) noexcept
    {
        for (compile_call* call : calls_)
            out.push_back(*call);
        calls_.clear();
    }

    /// Calls `start(call)` for each call that has not been started; if that returns an error, the call leaves, and
    /// `complete(call, error_code)` is called.
    template <class Start, class Complete>
    void begin(Start start, Complete complete)
    {
        for (auto it = calls_.begin(); it != calls_.end();) {
            compile_call& call = **it;
            error_code ec;
            if (!call.begun) {
                call.begun = std::make_shared<const bool>(true);
                ec = start(call);
            }
            if (!ec) {
                ++it;
                continue;
            }
            it = calls_.erase(it);
            complete(call, ec);
        }
    }

    /// The call with this number, which leaves; null if it has left before, such as a cancelled one.
    compile_call* take(std::uint64_t sequence) noexcept
    {
        const auto found = std::ranges::find(calls_, sequence, &compile_call::sequence);
        if (found == calls_.end())
            return nullptr;
        compile_call* call = *found;
        calls_.erase(found);
        return call;
    }

private:
    std::vector<compile_call*> calls_;
};

} // namespace coaccel::detail

#endif
