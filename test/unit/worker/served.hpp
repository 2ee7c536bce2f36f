#ifndef COACCEL_TEST_UNIT_WORKER_SERVED_HPP
#define COACCEL_TEST_UNIT_WORKER_SERVED_HPP

#include "host/factory.hpp"
#include "support/context_driver.hpp"
#include "worker/child/server.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace test {

/// The first record that a worker gets.
inline std::vector<std::byte> adopt_record()
{
    coaccel::worker::encoder out;
    out.put(coaccel::worker::message_type::adopt);
    out.put(context_driver::device);
    out.put(context_driver::generation);
    return {out.record().begin(), out.record().end()};
}

/// A server on its own thread, with the test as its parent. The test makes it end, with an invalid record for example,
/// before it destroys this object.
class served {
public:
    /// `staging` must exist for as long as the context of the server.
    explicit served(std::span<std::byte> staging, coaccel::host_options o = {})
    {
        using namespace std::chrono_literals;
        control_->setup.spin = 0ns;
        control_->setup.beat = 100ms;
        control_->setup.staging_bytes = staging.size();
        o.threads = 1;
        o.injector = &faults_;
        thread_ = std::thread([this, staging, o] {
            {
                coaccel::worker::server s({*control_,
                                           {request_ring_.get(), coaccel::worker::ring_bytes},
                                           {reply_ring_.get(), coaccel::worker::ring_bytes},
                                           staging,
                                           request_bell_,
                                           reply_bell_,
                                           sockets_.second});
                s.run(coaccel::host::make_factory(o), faults_);
            }
            over_.set_value();
        });
    }

    ~served() { thread_.join(); }

    /// Returns false if the ring is full.
    bool ask(std::span<const std::byte> record)
    {
        if (requests_.write(record) != coaccel::worker::written::yes)
            return false;
        if (requests_.wants_bell())
            request_bell_.ring();
        return true;
    }

    /// Takes the next reply; false if there is none. Ends the test case if the ring is invalid.
    bool take()
    {
        const auto got = replies_.read(record_);
        REQUIRE(got);
        return got.value();
    }

    /// The reply that was taken last.
    coaccel::worker::decoder reply() const { return coaccel::worker::decoder(record_); }

    /// Takes the next reply as soon as there is one.
    void wait_for_reply()
    {
        while (!take())
            if (replies_.may_sleep()) {
                REQUIRE(reply_bell_.wait(std::chrono::seconds(60)));
                replies_.awake();
            }
    }

    bool over(std::chrono::milliseconds wait) { return ended_.wait_for(wait) == std::future_status::ready; }
    bool has_taken_all() const { return control_->requests.taken == control_->requests.written; }

    coaccel::worker::control_block& control() { return *control_; }
    coaccel::worker::descriptor_socket& socket() { return sockets_.first; }
    void ring() { request_bell_.ring(); }

private:
    template <class T>
    using pair_of = std::pair<T, T>;

    std::unique_ptr<coaccel::worker::control_block> control_ = std::make_unique<coaccel::worker::control_block>();
    std::unique_ptr<std::byte[]> request_ring_ = std::make_unique<std::byte[]>(coaccel::worker::ring_bytes);
    std::unique_ptr<std::byte[]> reply_ring_ = std::make_unique<std::byte[]>(coaccel::worker::ring_bytes);
    coaccel::worker::doorbell request_bell_ = coaccel::worker::doorbell::create().value();
    coaccel::worker::doorbell reply_bell_ = coaccel::worker::doorbell::create().value();
    pair_of<coaccel::worker::descriptor_socket> sockets_ = coaccel::worker::descriptor_socket::create().value();
    coaccel::fault_injector faults_;
    coaccel::worker::ring_writer requests_{control_->requests, {request_ring_.get(), coaccel::worker::ring_bytes}};
    coaccel::worker::ring_reader replies_{control_->replies, {reply_ring_.get(), coaccel::worker::ring_bytes}};
    std::vector<std::byte> record_;
    std::promise<void> over_;
    std::future<void> ended_ = over_.get_future();
    std::thread thread_;
};

} // namespace test

#endif
