-- The country of the recipient if the network is unknown: the place of its code among AA, AB, … ZZ, counted from 0. NULL if
-- the network is known, which tells the country, and in older messages. Traffic counts such messages under 3000 more.
ALTER TABLE message ADD COLUMN country SMALLINT;
