"""Work that is done again, or for results of which little is used."""
