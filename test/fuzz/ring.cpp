// Both ends of a ring, whose memory and positions the input changes arbitrarily between their calls.
#include "worker/transport/ring.hpp"

#include "input.hpp"

#include <algorithm>
#include <deque>
#include <memory>

namespace {

using namespace coaccel::worker;
using coaccel::errc;
using fuzz::require;
using fuzz::ring_step;

constexpr std::size_t capacity = 4096;

class game {
public:
    explicit game(fuzz::input& in) : in_(in) {}

    void step()
    {
        switch (fuzz::take_step(in_, ring_step::poke)) {
        case ring_step::write: write(); break;
        case ring_step::read: read(); break;
        case ring_step::sleep: sleep(); break;
        case ring_step::written: control_.written = tampered(control_.written); break;
        case ring_step::taken: control_.taken = tampered(control_.taken); break;
        // A hint that only affects waking.
        case ring_step::sleeping: control_.sleeping = in_.take<std::uint32_t>(); break;
        case ring_step::length: {
            const auto at = in_.take<std::uint16_t>() % (capacity / 8) * 8;
            const auto length = in_.take<std::uint32_t>();
            std::memcpy(data_.get() + at, &length, sizeof(length));
            fair_ = false;
            break;
        }
        case ring_step::poke: {
            const auto at = in_.take<std::uint16_t>() % capacity;
            const auto what = in_.take_record();
            std::copy_n(what.begin(), std::min(what.size(), capacity - at), data_.get() + at);
            fair_ = false;
            break;
        }
        }
    }

private:
    /// A value close to the old one, or an arbitrary one.
    std::uint64_t tampered(std::uint64_t position)
    {
        fair_ = false;
        const auto kind = in_.take<std::uint8_t>();
        if (kind % 2 == 0)
            return position + static_cast<std::uint64_t>(in_.take<std::int16_t>());
        return in_.take<std::uint64_t>();
    }

    void write()
    {
        const auto length = in_.take<std::uint16_t>() % writer_.max_record() + 1;
        const fuzz::bytes record(length, static_cast<std::byte>(in_.take<std::uint8_t>()));
        const auto answer = writer_.write(record);
        require(!refused_ || answer == written::corrupted, "a writer that has refused stays so");
        refused_ = answer == written::corrupted;
        if (!fair_)
            return;
        const bool fits = used_ + room_for(length) <= capacity;
        require(answer == (fits ? written::yes : written::full), "an undisturbed ring takes what it has room for");
        if (fits) {
            sent_.push_back(record);
            used_ += room_for(length);
        }
    }

    void read()
    {
        const auto answer = reader_.read(got_);
        if (!answer) {
            require(answer.error() == errc::worker_corrupted, "a reader refuses for one reason");
            require(!fair_, "an undisturbed ring can be read");
            condemned_ = true;
            return;
        }
        require(!condemned_, "a reader that has refused stays so");
        if (answer.value())
            require(!got_.empty() && got_.size() <= reader_.max_record(), "a record has a possible length");
        if (!fair_)
            return;
        require(answer.value() == !sent_.empty(), "an undisturbed ring loses and invents nothing");
        if (!answer.value())
            return;
        require(got_ == sent_.front(), "an undisturbed ring has what was written");
        used_ -= room_for(got_.size());
        sent_.pop_front();
    }

    void sleep()
    {
        const bool asleep = reader_.may_sleep();
        if (fair_)
            require(asleep == sent_.empty(), "a reader sleeps when there is nothing to read");
        if (!asleep)
            return;
        require(writer_.wants_bell(), "who sleeps is woken");
        require(!writer_.wants_bell(), "once");
        reader_.awake();
    }

    static std::size_t room_for(std::size_t length) { return (4 + length + 7) / 8 * 8; }

    fuzz::input& in_;
    // Exactly the ring's size: the address sanitizer detects access beyond it.
    std::unique_ptr<std::byte[]> data_ = std::make_unique<std::byte[]>(capacity);
    ring_control control_;
    ring_writer writer_{control_, {data_.get(), capacity}};
    ring_reader reader_{control_, {data_.get(), capacity}};
    fuzz::bytes got_;
    std::deque<fuzz::bytes> sent_;
    std::size_t used_ = 0;
    bool fair_ = true;
    bool refused_ = false;
    bool condemned_ = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz::input in(data, size);
    game g(in);
    while (!in.empty())
        g.step();
    return 0;
}
