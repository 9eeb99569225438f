"""From text to trees and back: lexer, layout, parser; flat printing and the formatter."""
