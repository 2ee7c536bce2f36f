#include <coaccel/core/asio_configuration.hpp>

// Selected by COACCEL_ASIO_DEFINITIONS; programs that link coaccel then use the Asio that is compiled here.
#if defined(BOOST_ASIO_SEPARATE_COMPILATION)
#include <boost/asio/impl/src.hpp>
#endif

namespace coaccel::COACCEL_DETAIL_ASIO_CONFIGURATION {

const char must_match_the_library = 0;

} // namespace coaccel::COACCEL_DETAIL_ASIO_CONFIGURATION
