#include "serve/batcher_core.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/serve/detail/function_runner.hpp>

namespace coaccel::detail {

error_code function_threw(const std::string& name, const std::exception_ptr& e) noexcept
{
    try {
        std::rethrow_exception(e);
    } catch (const std::exception& x) {
        return op_error(errc::user_exception, name, {"the function threw: ", x.what()});
    } catch (...) {
        return op_error(errc::user_exception, name, {"the function threw something that is no std::exception"});
    }
}

error_code wrong_number_of_replies(const std::string& name, std::size_t replies, std::size_t requests) noexcept
{
    return op_error(errc::no_reply, name, {"the function returned ", replies, " replies for ", requests, " requests"});
}

error_code function_vanished(const std::string& name) noexcept
{
    return op_error(errc::no_reply, name, {"the coroutine of the function was destroyed before it ended"});
}

void note_split(batcher_core& core) noexcept
{
    core.note_split();
}

} // namespace coaccel::detail
