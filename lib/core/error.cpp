#include <coaccel/core/error.hpp>

#include <array>
#include <mutex>
#include <string>
#include <utility>

namespace coaccel {
namespace {

const char* text(errc e) noexcept
{
    switch (e) {
    case errc::invalid_argument: return "a parameter is outside its domain";
    case errc::size_overflow: return "a product of sizes overflows";
    case errc::leading_dimension: return "a leading dimension or stride is too small";
    case errc::out_of_bounds: return "a ref reaches beyond its buffer";
    case errc::wrong_device: return "a ref belongs to another device";
    case errc::stale_ref: return "a ref belongs to an older generation of the context";
    case errc::released_ref: return "the buffer of a ref has been released";
    case errc::wrong_dtype: return "a ref has another element type than its buffer";
    case errc::overlap: return "an output overlaps another operand";
    case errc::length_mismatch: return "a host span or an operand has the wrong length";
    case errc::unsupported_op: return "the backend does not implement this op";
    case errc::invalid_option: return "an option is out of range";
    case errc::already_waiting: return "another consumer is already waiting";
    case errc::out_of_memory: return "out of device memory";
    case errc::queue_full: return "the queue is full";
    case errc::deadline_exceeded: return "the deadline has passed";
    case errc::closed: return "closed";
    case errc::no_reply: return "the request was dropped without a reply";
    case errc::actor_failed: return "the actor failed while it held the message";
    case errc::device_stopped: return "the device is stopped";
    case errc::device_failed: return "the device has failed; its status says why";
    case errc::backend_unavailable: return "the backend is not available here";
    case errc::start_failed: return "the backend refused to start";
    case errc::context_lost: return "the context was lost";
    case errc::device_lost: return "the device was lost";
    case errc::no_value: return "no value was set";
    case errc::backend_error: return "the backend broke its contract";
    case errc::user_exception: return "a function given by the caller threw";
    case errc::library_missing: return "a vendor library is missing";
    case errc::library_too_old: return "a vendor library is too old";
    case errc::no_device: return "there is no such device";
    case errc::compile_failed: return "the kernel source does not compile";
    case errc::argument_mismatch: return "the arguments are not those of the kernel";
    case errc::invalid_launch: return "the launch is beyond what the device can do";
    case errc::not_isolatable: return "the op needs code or memory of this process, which a worker does not have";
    case errc::worker_missing: return "the worker program cannot be run";
    case errc::worker_mismatch: return "the worker program is of another version or build";
    case errc::worker_exited: return "the worker process ended by itself";
    case errc::worker_killed: return "the worker process was ended by a signal";
    case errc::worker_hung: return "the worker process gave no sign of life";
    case errc::worker_late: return "the worker process did not become ready in time";
    case errc::worker_corrupted: return "the worker process wrote nonsense to the shared memory";
    case errc::plugin_missing: return "the plug-in cannot be loaded";
    case errc::function_missing: return "no plug-in has a function of this name";
    case errc::actor_stopped: return "the actor has stopped";
    case errc::file_failed: return "the system refused to use a file";
    case errc::file_invalid: return "a file is damaged or of another kind";
    case errc::file_version: return "a file has another version of its format";
    case errc::not_savable: return "the plan uses something that exists only in this process";
    case errc::buffer_suspect: return "durable memory may have been half-written when a context was lost";
    case errc::plan_quarantined: return "too many runs or loads of the plan have ended the context of its device";
    case errc::function_version: return "a function of a plug-in has another version";
    }
    return "unknown coaccel error";
}

// Zero for values that are not an errc: success, or a value from another version.
fault class_of(errc e) noexcept
{
    switch (e) {
    case errc::invalid_argument:
    case errc::size_overflow:
    case errc::leading_dimension:
    case errc::out_of_bounds:
    case errc::wrong_device:
    case errc::released_ref:
    case errc::wrong_dtype:
    case errc::overlap:
    case errc::length_mismatch:
    case errc::unsupported_op:
    case errc::invalid_option:
    case errc::already_waiting:
    case errc::no_value:
    case errc::user_exception:
    case errc::compile_failed:
    case errc::argument_mismatch:
    case errc::invalid_launch:
    case errc::function_missing:
    case errc::function_version:
    case errc::not_isolatable:
    case errc::file_failed:
    case errc::file_invalid:
    case errc::file_version:
    case errc::not_savable: return fault::caller;
    case errc::out_of_memory:
    case errc::queue_full:
    case errc::deadline_exceeded:
    case errc::start_failed: return fault::busy;
    case errc::closed:
    case errc::no_reply:
    case errc::actor_failed:
    case errc::actor_stopped:
    case errc::device_stopped:
    case errc::plan_quarantined:
    case errc::buffer_suspect: return fault::stopped;
    case errc::context_lost:
    case errc::stale_ref:
    case errc::worker_exited:
    case errc::worker_killed:
    case errc::worker_hung:
    case errc::worker_late:
    case errc::worker_corrupted: return fault::context_lost;
    case errc::device_failed:
    case errc::device_lost:
    case errc::no_device:
    case errc::worker_missing:
    case errc::worker_mismatch:
    case errc::plugin_missing:
    case errc::backend_unavailable: return fault::device_lost;
    case errc::library_missing:
    case errc::library_too_old:
    case errc::backend_error: return fault::library;
    }
    return fault{};
}

struct errc_category final : boost::system::error_category {
    const char* name() const noexcept override { return "coaccel"; }
    std::string message(int value) const override { return text(static_cast<errc>(value)); }

    boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        const fault f = class_of(static_cast<errc>(value));
        return f == fault{} ? boost::system::error_condition(value, *this) : make_error_condition(f);
    }
};

// A value combines a sequence number and an errc; messages are stored in a ring, indexed by the sequence number.
// Refused ops have a separate ring: a caller that makes hundreds of invalid requests does not evict a compiler's log or
// the reason why a device failed.
class noted_errors final : public boost::system::error_category {
public:
    static errc errc_of(int value) noexcept { return static_cast<errc>(value & errc_mask); }

    const char* name() const noexcept override { return "coaccel"; }

    std::string message(int value) const override
    {
        const std::scoped_lock lock(mutex_);
        const entry& e = ring_of(errc_of(value)).entries[place(value)];
        return e.value == value ? e.message : text(errc_of(value));
    }

    boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        return make_error_condition(class_of(errc_of(value)));
    }

    error_code note(errc what, std::string message) const
    {
        const std::scoped_lock lock(mutex_);
        ring& r = ring_of(what);
        // An entry that is soon overwritten is not reused.
        for (const entry& e : r.entries)
            if (e.value != 0 && errc_of(e.value) == what && e.message == message && r.is_recent(e.value))
                return {e.value, *this};
        r.last = r.last % max_number + 1;
        const int value = r.last << errc_bits | static_cast<int>(what);
        r.entries[place(value)] = {value, std::move(message)};
        return {value, *this};
    }

private:
    static constexpr int errc_bits = 8;
    static constexpr int errc_mask = (1 << errc_bits) - 1;
    static constexpr int max_number = (1 << 22) - 1;

    struct entry {
        int value = 0;
        std::string message;
    };

    struct ring {
        int last = 0;
        std::array<entry, 256> entries;

        /// Whether at least half of the ring is written before this entry is overwritten.
        bool is_recent(int value) const noexcept
        {
            const int number = value >> errc_bits;
            const int age = last - number + (last < number ? max_number : 0);
            return age < 128;
        }
    };

    ring& ring_of(errc what) const noexcept
    {
        const bool refused = class_of(what) == fault::caller && what != errc::compile_failed;
        return refused || what == errc::stale_ref || what == errc::out_of_memory ? of_ops_ : others_;
    }

    static std::size_t place(int value) noexcept { return static_cast<std::size_t>(value >> errc_bits) % 256; }

    mutable std::mutex mutex_;
    mutable ring of_ops_;
    mutable ring others_;
};

const noted_errors& noted_category() noexcept
{
    // Never destroyed: an error code may be asked for its message until the very end of the program.
    static const noted_errors& instance = *new noted_errors;
    return instance;
}

struct fault_condition_category final : boost::system::error_category {
    const char* name() const noexcept override { return "coaccel.fault"; }

    std::string message(int value) const override
    {
        switch (static_cast<fault>(value)) {
        case fault::caller: return "the request is wrong";
        case fault::busy: return "resources are short or time ran out";
        case fault::library: return "a library refused";
        case fault::context_lost: return "the context was lost";
        case fault::device_lost: return "the device was lost";
        case fault::stopped: return "stopped";
        }
        return "unknown fault";
    }
};

} // namespace

const boost::system::error_category& coaccel_category() noexcept
{
    static const errc_category instance;
    return instance;
}

const boost::system::error_category& fault_category() noexcept
{
    static const fault_condition_category instance;
    return instance;
}

error_code make_error_with_message(errc what, std::string message)
{
    return noted_category().note(what, std::move(message));
}

errc errc_of(const error_code& ec) noexcept
{
    if (ec.category() == coaccel_category())
        return static_cast<errc>(ec.value());
    return ec.category() == noted_category() ? noted_errors::errc_of(ec.value()) : errc{};
}

bool is_context_lost(const error_code& ec) noexcept
{
    return ec == make_error_condition(fault::context_lost);
}

bool is_device_lost(const error_code& ec) noexcept
{
    return ec == make_error_condition(fault::device_lost);
}

bool is_caller_error(const error_code& ec) noexcept
{
    return ec == make_error_condition(fault::caller);
}

bool is_busy(const error_code& ec) noexcept
{
    return ec == make_error_condition(fault::busy);
}

} // namespace coaccel
