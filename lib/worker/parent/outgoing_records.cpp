#include "worker/parent/outgoing_records.hpp"

namespace coaccel::worker {

void outgoing_records::post()
{
    const auto record = out_.record();
    if (waiting_.empty()) {
        switch (ring_.write(record)) {
        case written::yes: return events_.on_written();
        case written::corrupted: return events_.on_corrupted();
        case written::full: break;
        }
    }
    waiting_.emplace_back(record.begin(), record.end());
}

bool outgoing_records::flush()
{
    bool any = false;
    for (; !waiting_.empty(); waiting_.pop_front()) {
        const written w = ring_.write(waiting_.front());
        if (w == written::full)
            break;
        if (w == written::corrupted) {
            events_.on_corrupted();
            return true;
        }
        any = true;
    }
    if (any)
        events_.on_written();
    return any;
}

} // namespace coaccel::worker
