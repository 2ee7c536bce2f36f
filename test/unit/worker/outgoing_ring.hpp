#ifndef COACCEL_TEST_UNIT_WORKER_OUTGOING_RING_HPP
#define COACCEL_TEST_UNIT_WORKER_OUTGOING_RING_HPP

#include "worker/parent/outgoing_records.hpp"
#include "worker/protocol/wire.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace test {

/// The ring to a worker, which the test reads in the place of the worker.
struct outgoing_ring : coaccel::worker::outgoing_events {
    explicit outgoing_ring(std::size_t bytes = coaccel::worker::ring_bytes) : capacity(bytes) {}
    virtual ~outgoing_ring() = default;

    void on_written() noexcept override {}
    void on_corrupted() noexcept override { FAIL_CHECK("the ring is invalid"); }

    /// Takes the next record; false if there is none.
    bool read() { return reader.read(record).value(); }

    const std::size_t capacity;
    std::unique_ptr<std::byte[]> data = std::make_unique<std::byte[]>(capacity);
    coaccel::worker::ring_control control;
    coaccel::worker::ring_writer writer{control, {data.get(), capacity}};
    coaccel::worker::ring_reader reader{control, {data.get(), capacity}};
    coaccel::worker::outgoing_records out{writer, *this};
    std::vector<std::byte> record;
};

} // namespace test

#endif
