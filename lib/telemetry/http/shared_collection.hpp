#ifndef COACCEL_TELEMETRY_HTTP_SHARED_COLLECTION_HPP
#define COACCEL_TELEMETRY_HTTP_SHARED_COLLECTION_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/telemetry/snapshot.hpp>

#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <memory>
#include <set>
#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

class http_server;

/// A collection for all requests that wait at the same time, so that a registry whose executor does not run gets only
/// one collection from an endpoint.
///
/// A session waits on a timer of its own execution context, never in the registry: the context of the endpoint may be
/// destroyed while a device of the registry does not answer.
struct shared_collection {
    // Used on the strand of the server only.
    bool done = false;
    error_code ec;
    telemetry::snapshot all;
    /// A cancelled timer wakes its session.
    std::set<asio::steady_timer*> waiters;

    /// There was no memory to deliver the result. Set by any thread.
    std::atomic<bool> lost{false};

    void wake_all()
    {
        for (asio::steady_timer* t : waiters)
            t->cancel();
    }
};

/// A timer among the waiters of a collection.
class collection_wait {
public:
    collection_wait(shared_collection& of, asio::steady_timer& timer) : of_(of), timer_(timer)
    {
        of_.waiters.insert(&timer_);
    }
    collection_wait(const collection_wait&) = delete;
    collection_wait& operator=(const collection_wait&) = delete;
    ~collection_wait() { of_.waiters.erase(&timer_); }

private:
    shared_collection& of_;
    asio::steady_timer& timer_;
};

/// The handler of the collection. It runs on the registry's executor, or is destroyed with that.
class collection_answer {
public:
    collection_answer(std::weak_ptr<http_server> server, std::shared_ptr<shared_collection> collection) noexcept
        : server_(std::move(server)), collection_(std::move(collection))
    {}
    collection_answer(collection_answer&&) noexcept = default;
    collection_answer& operator=(collection_answer&&) = delete;
    ~collection_answer();

    void operator()(error_code ec, telemetry::snapshot all);

private:
    std::weak_ptr<http_server> server_;
    std::shared_ptr<shared_collection> collection_;
};

} // namespace coaccel::detail

#endif
