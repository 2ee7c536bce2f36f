#include "chaos.hpp"

namespace chaos {
namespace {

using namespace coaccel;
using namespace std::chrono_literals;

/// Devices in this process, with faults injected by the host backend.
class in_process final : public scenario {
public:
    device_options options_for(int i) const override
    {
        constexpr completion strategies[] = {completion::adaptive, completion::host_fn, completion::sync,
                                             completion::adaptive};
        device_options o = common_options(i);
        o.host.mode = i == 3 ? host_mode::inline_ : host_mode::pool;
        o.host.memory_limit = 8 << 20;
        o.context.completion = strategies[i];
        o.context.hang_timeout = 50ms;
        o.restart.max_restarts = 50;
        return o;
    }

    std::uint32_t most_elements() const noexcept override { return 20'000; }
    std::chrono::milliseconds longest_pause() const noexcept override { return 80ms; }

    asio::awaitable<void> strike(seat& s, tally& counts, dice& random) override
    {
        auto& faults = s.injector;
        const bool threads = s.options.host.mode == host_mode::pool;
        const auto what = random.pick(20);
        if (what < 10)
            faults.poison();
        else if (what < 12 && threads)
            faults.hang();
        else if (what < 14)
            faults.refuse_starts(2);
        else if (what < 16)
            s.current().cancel();
        else if (what == 16 || s.current().status().state == device_state::failed)
            co_await renew(s, counts);
    }
};

} // namespace

std::unique_ptr<scenario> in_process_scenario()
{
    return std::make_unique<in_process>();
}

} // namespace chaos
