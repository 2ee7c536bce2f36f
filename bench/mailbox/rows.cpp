#include "mailbox/rates.hpp"
#include "row.hpp"

namespace coaccel::bench {

void mailbox_rows(rows& table)
{
    constexpr std::size_t messages = 2'000'000;
    constexpr double millions = 1e-6;
    for (const int producers : {1, 4}) {
        const std::string shape = producers == 1 ? "_1to1" : "_4to1";
        auto ours = [=] { return mailbox_rate(producers, messages) * millions; };
#ifdef COACCEL_HAS_CAF
        const auto caf = side_by_side(5, ours, [=] { return caf_rate(producers, messages) * millions; });
        table.push_back(at_least("mailbox_vs_caf" + shape, caf, 2, "M messages/s", ">= 2"));
#endif
        const auto channel = side_by_side(5, ours, [=] { return channel_rate(producers, messages) * millions; });
        table.push_back(at_least("mailbox_vs_channel" + shape, channel, 2, "M messages/s", ">= 2"));
    }
}

} // namespace coaccel::bench
