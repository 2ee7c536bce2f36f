// Asio compiled once for the whole library; users stay free to choose their own way.
#include <boost/asio/impl/src.hpp>
