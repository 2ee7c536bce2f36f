#include <coaccel/core/error.hpp>

#include <string>

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
    case errc::length_mismatch: return "a host span has the wrong length";
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
    case errc::device_failed: return "the device has failed and its restart budget is spent";
    case errc::backend_unavailable: return "the backend is not available here";
    case errc::start_failed: return "the backend refused to start";
    case errc::context_lost: return "the context was lost";
    case errc::device_lost: return "the device was lost";
    case errc::no_value: return "no value was set";
    case errc::backend_error: return "the backend broke its contract";
    case errc::user_exception: return "a function given by the caller threw";
    }
    return "unknown coaccel error";
}

// Zero for what is not an errc: success, or a value that some other version may send.
fault class_of(errc e) noexcept
{
    switch (e) {
    case errc::invalid_argument:
    case errc::size_overflow:
    case errc::leading_dimension:
    case errc::out_of_bounds:
    case errc::wrong_device:
    case errc::stale_ref:
    case errc::released_ref:
    case errc::wrong_dtype:
    case errc::overlap:
    case errc::length_mismatch:
    case errc::unsupported_op:
    case errc::invalid_option:
    case errc::already_waiting:
    case errc::no_value:
    case errc::user_exception: return fault::caller;
    case errc::out_of_memory:
    case errc::queue_full:
    case errc::deadline_exceeded:
    case errc::start_failed: return fault::busy;
    case errc::closed:
    case errc::no_reply:
    case errc::actor_failed:
    case errc::device_stopped: return fault::stopped;
    case errc::context_lost: return fault::context_lost;
    case errc::device_failed:
    case errc::device_lost:
    case errc::backend_unavailable: return fault::device_lost;
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
