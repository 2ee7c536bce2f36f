#ifndef COACCEL_WORKER_PARENT_OUTGOING_RECORDS_HPP
#define COACCEL_WORKER_PARENT_OUTGOING_RECORDS_HPP

#include "worker/protocol/codec.hpp"
#include "worker/transport/ring.hpp"

#include <deque>
#include <vector>

namespace coaccel::worker {

/// What the owner of outgoing records must do.
class outgoing_events {
public:
    /// Records were written to the ring: the worker may have to be woken.
    virtual void on_written() noexcept = 0;
    /// The worker has put invalid data into the ring's shared state.
    virtual void on_corrupted() noexcept = 0;

protected:
    ~outgoing_events() = default;
};

/// The records for a worker. They are written in the order in which they were posted; those that find the ring full
/// wait here, and so do all that follow them.
class COACCEL_DECL outgoing_records {
public:
    outgoing_records(ring_writer& ring, outgoing_events& events) noexcept : ring_(ring), events_(events) {}

    /// An empty record. It reuses the memory of the last one, so that sending does not allocate.
    encoder& begin() noexcept
    {
        out_.clear();
        return out_;
    }

    /// Whether the record that was begun fits into the ring.
    bool fits() const noexcept { return size() <= max_size(); }
    std::size_t size() const noexcept { return out_.record().size(); }
    std::size_t max_size() const noexcept { return ring_.max_record(); }

    /// Sends the record that was begun. Preconditions: fits().
    void post();

    /// Writes the records that wait, as far as the ring has room. Returns whether there was progress; an end of the
    /// worker is progress too.
    bool flush();

    /// Whether records wait for room. The worker does not signal room, so the owner must call flush() now and then.
    bool waiting() const noexcept { return !waiting_.empty(); }

private:
    ring_writer& ring_;
    outgoing_events& events_;
    encoder out_;
    std::deque<std::vector<std::byte>> waiting_;
};

} // namespace coaccel::worker

#endif
