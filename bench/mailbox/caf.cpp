#include "rates.hpp"

#include <caf/all.hpp>

#include <cstdint>

// CAF's mailbox is unbounded, so its producers never wait.
namespace coaccel::bench {
namespace {

void produce(caf::event_based_actor* self, caf::actor to, std::uint64_t id, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        self->send(to, id, static_cast<std::uint64_t>(i));
}

caf::behavior consume(caf::stateful_actor<std::uint64_t>* self, std::size_t count)
{
    self->state = 0;
    auto left = count;
    return {[self, left](std::uint64_t, std::uint64_t value) mutable {
        self->state += value;
        if (--left == 0)
            self->quit();
    }};
}

} // namespace

double caf_rate(int producers, std::size_t messages)
{
    caf::actor_system_config config;
    caf::actor_system system(config);
    const std::size_t each = messages / static_cast<std::size_t>(producers);
    auto to = system.spawn(consume, each * static_cast<std::size_t>(producers));

    const stopwatch watch;
    for (int p = 0; p < producers; ++p)
        system.spawn<caf::detached>(produce, to, static_cast<std::uint64_t>(p), each);
    caf::scoped_actor self(system);
    self->wait_for(to);
    return watch.rate(each * static_cast<std::size_t>(producers));
}

} // namespace coaccel::bench
