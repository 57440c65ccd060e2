"""Names for generated addresses: streets, towns, people and firms.

A town has a region and the first characters of its postcodes. Each table is a text with entries separated
by semicolons, which is easier to read than Python tuples.
"""

from __future__ import annotations

from typing import NamedTuple


class Town(NamedTuple):
    """A town, its region (may be empty) and the first characters of its postcodes."""

    name: str
    region: str
    code: str


def _words(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(";"))


def _towns(text: str) -> tuple[Town, ...]:
    rows = [entry.strip().split("|") for entry in text.split(";")]
    return tuple(Town(name, region, code) for name, region, code in rows)


def _variants(text: str) -> tuple[tuple[str, ...], ...]:
    """Entries with several spellings, separated by spaces."""
    return tuple(tuple(entry.split()) for entry in text.split(";"))


ROADS = _variants("""
Street St St.; Avenue Ave Ave. Av; Road Rd Rd.; Drive Dr Dr.; Lane Ln Ln.; Boulevard Blvd Blvd.;
Court Ct Ct.; Place Pl Pl.; Terrace Ter; Way; Parkway Pkwy; Highway Hwy; Circle Cir; Square Sq
""")
UK_ROADS = _variants("""
Street St; Road Rd; Lane; Close; Avenue Ave; Gardens Gdns; Crescent Cres; Terrace; Way; Square;
Hill; Mews; Row
""")
ENGLISH_STREETS = _words("""
Oak; Maple; Cedar; Elm; Pine; Willow; Birch; Chestnut; Walnut; Hickory; Magnolia; Juniper; Sycamore;
Laurel; Holly; Ash Grove; Main; High; Church; Mill; Station; Park; Victoria; Queen; King; Prince;
Albert; Wellington; Nelson; Windsor; Kensington; Gloucester; Richmond; Lincoln; Washington;
Jefferson; Madison; Jackson; Franklin; Monroe; Adams; Grant; Lafayette; Sherman; Houston; Lake;
River; Ridge; Valley; Hillside; Sunset; Prospect; Meadow; Spring; Orchard; Harbor View; Bay; Ocean;
Canyon; Prairie; Mountain View; Forest Hill; Stone Bridge; Old Mill; Quarry; Canal; Market; Mercer;
Cooper; Potter; Baker; Tanner; Weaver; Fletcher; Carpenter; Bishop; Abbey; Priory; Chapel; Castle;
Manor; College; University; School; Liberty; Union; Commerce; Industrial; Railroad; Depot; Airport;
Eagle; Falcon; Heron; Fox Hollow; Deer Run; Wolf Creek; Bear Creek; Martin Luther King; Rosa Parks;
London; Bristol; York; Cambridge; Oxford; Boston; Denver; Cherokee; Dakota; Mohawk; Seneca;
Green; White; North; South; East; West; First; Second; Third; 5th; 12th; 23rd; 42nd; 101st
""")
GERMAN_STREETS = _words("""
Hauptstraße; Bahnhofstraße; Schulstraße; Gartenstraße; Dorfstraße; Bergstraße; Lindenstraße;
Kirchstraße; Waldstraße; Ringstraße; Schillerstraße; Goethestraße; Mozartstraße; Beethovenstraße;
Friedrichstraße; Kantstraße; Leibnizstraße; Rosenstraße; Mühlenstraße; Brunnenstraße; Poststraße;
Kaiserstraße; Königsallee; Lindenallee; Kastanienallee; Ahornweg; Birkenweg; Tannenweg; Eichenweg;
Wiesenweg; Mühlweg; Finkenweg; Amselweg; Am Markt; Am Sportplatz; Am Alten Friedhof; An der Alster;
Im Winkel; Unter den Eichen; Alte Landstraße; Neuer Wall; Lange Reihe; Große Freiheit; Marktplatz;
Schlossplatz; Rathausplatz; Karl-Marx-Straße; Konrad-Adenauer-Ring; Sophie-Scholl-Weg
""")
FRENCH_STREETS = _words("""
de la Paix; de la République; de la Liberté; Victor Hugo; Jean Jaurès; du Général de Gaulle;
de la Gare; de l'Église; du Moulin; des Écoles; de la Mairie; des Lilas; des Acacias; des Tilleuls;
du Port; de la Fontaine; du Château; Saint-Michel; Saint-Martin; Sainte-Catherine; Pasteur;
Gambetta; Voltaire; Molière; Émile Zola; Jules Ferry; Jeanne d'Arc; de Verdun; du 8 Mai 1945;
du 11 Novembre; des Roses; des Vignes; du Marché; de Bretagne; d'Alsace; de Strasbourg; de Lyon;
des Cordeliers; du Bac; de l'Hôpital; du Lavoir; des Peupliers; Marie Curie; Louis Blanc
""")
SPANISH_STREETS = _words("""
Mayor; Real; de la Constitución; de Alcalá; de Cervantes; del Sol; de la Iglesia; de Goya;
de San Juan; de Santa Ana; de Colón; del Carmen; Nueva; de los Reyes Católicos; de Velázquez;
de la Estación; del Prado; de Andalucía; de Juan Ramón Jiménez; de la Rosa
""")
ITALIAN_STREETS = _words("""
Roma; Garibaldi; Giuseppe Mazzini; Dante Alighieri; Verdi; della Repubblica; dei Mille; Cavour;
San Marco; Santa Lucia; delle Rose; del Corso; XX Settembre; IV Novembre; Guglielmo Marconi;
Leonardo da Vinci; della Libertà; Vittorio Emanuele II; dei Fiori; Monte Bianco
""")
DUTCH_STREETS = _words("""
Dorpsstraat; Kerkstraat; Molenweg; Schoolstraat; Stationsweg; Julianalaan; Beatrixlaan;
Wilhelminastraat; Prinsengracht; Herengracht; Oudegracht; Nieuwstraat; Beukenlaan; Eikenlaan;
Lindelaan; Havenkade; Van Goghstraat; Rembrandtlaan; Zuiderzeeweg; Marktplein
""")

US_TOWNS = _towns("""
New York|NY|100; Brooklyn|NY|112; Buffalo|NY|142; Ithaca|NY|148; Los Angeles|CA|900;
San Diego|CA|921; San Jose|CA|951; San Francisco|CA|941; Sacramento|CA|958; Oakland|CA|946;
Fresno|CA|937; Santa Barbara|CA|931; Chicago|IL|606; Springfield|IL|627; Houston|TX|770;
Dallas|TX|752; Austin|TX|787; San Antonio|TX|782; Fort Worth|TX|761; El Paso|TX|799;
Paris|TX|754; Phoenix|AZ|850; Tucson|AZ|857; Philadelphia|PA|191; Pittsburgh|PA|152;
Jacksonville|FL|322; Miami|FL|331; Tampa|FL|336; Orlando|FL|328; Columbus|OH|432;
Cleveland|OH|441; Cincinnati|OH|452; Charlotte|NC|282; Raleigh|NC|276; Indianapolis|IN|462;
Seattle|WA|981; Spokane|WA|992; Denver|CO|802; Boulder|CO|803; Colorado Springs|CO|809;
Boston|MA|021; Cambridge|MA|021; Worcester|MA|016; Nashville|TN|372; Memphis|TN|381;
Detroit|MI|482; Ann Arbor|MI|481; Portland|OR|972; Eugene|OR|974; Las Vegas|NV|891;
Louisville|KY|402; Baltimore|MD|212; Milwaukee|WI|532; Madison|WI|537; Albuquerque|NM|871;
Santa Fe|NM|875; Kansas City|MO|641; St. Louis|MO|631; Atlanta|GA|303; Savannah|GA|314;
Omaha|NE|681; Lincoln|NE|685; Minneapolis|MN|554; Saint Paul|MN|551; Tulsa|OK|741; Wichita|KS|672;
New Orleans|LA|701; Baton Rouge|LA|708; Honolulu|HI|968; Anchorage|AK|995; Boise|ID|837;
Salt Lake City|UT|841; Des Moines|IA|503; Little Rock|AR|722; Providence|RI|029;
Charleston|SC|294; Burlington|VT|054; Portland|ME|041; Concord|NH|033; Hartford|CT|061;
Richmond|VA|232; Washington|DC|200; Birmingham|AL|352; Jackson|MS|392; Sioux Falls|SD|571;
Fargo|ND|581; Billings|MT|591; Cheyenne|WY|820; Newark|NJ|071; Wilmington|DE|198
""")
UK_TOWNS = _towns("""
London||N; London||E; London||SW; London||SE; London||NW; London||W; Manchester||M;
Birmingham||B; Leeds|West Yorkshire|LS; Glasgow||G; Edinburgh||EH; Liverpool|Merseyside|L;
Bristol||BS; Sheffield|South Yorkshire|S; Cardiff||CF; Belfast||BT;
Newcastle upon Tyne|Tyne and Wear|NE; Nottingham|Nottinghamshire|NG; Leicester|Leicestershire|LE;
Oxford|Oxfordshire|OX; Cambridge|Cambridgeshire|CB; Brighton|East Sussex|BN;
York|North Yorkshire|YO; Bath|Somerset|BA; Exeter|Devon|EX; Norwich|Norfolk|NR; Plymouth|Devon|PL;
Southampton|Hampshire|SO; Portsmouth|Hampshire|PO; Reading|Berkshire|RG; Coventry||CV;
Derby|Derbyshire|DE; Aberdeen||AB; Dundee||DD; Inverness||IV; Swansea||SA;
Stoke-on-Trent|Staffordshire|ST; Canterbury|Kent|CT; Kingston upon Hull||HU;
Milton Keynes|Buckinghamshire|MK; Lincoln|Lincolnshire|LN; Chester|Cheshire|CH
""")
GERMAN_TOWNS = _towns("""
Berlin||10; Berlin||12; Berlin||13; Hamburg||20; Hamburg||22; München||80; München||81; Köln||50;
Frankfurt am Main||60; Stuttgart||70; Düsseldorf||40; Leipzig||04; Dresden||01; Hannover||30;
Nürnberg||90; Bremen||28; Essen||45; Dortmund||44; Bonn||53; Münster||48;
Freiburg im Breisgau||79; Heidelberg||69; Mainz||55; Kiel||24; Rostock||18; Jena||07; Erfurt||99;
Potsdam||14; Göttingen||37; Tübingen||72; Regensburg||93; Würzburg||97; Ulm||89; Aachen||52;
Bad Homburg||61; Neustadt an der Weinstraße||67
""")
FRENCH_TOWNS = _towns("""
Paris||750; Lyon||690; Marseille||130; Toulouse||310; Nice||060; Nantes||440; Strasbourg||670;
Montpellier||340; Bordeaux||330; Lille||590; Rennes||350; Reims||510; Grenoble||380; Dijon||210;
Angers||490; Nîmes||300; Tours||370; Limoges||870; Metz||570; Besançon||250; Orléans||450;
Rouen||760; Caen||140; Nancy||540; Avignon||840; La Rochelle||170; Saint-Étienne||420;
Aix-en-Provence||130; Clermont-Ferrand||630; Le Havre||766
""")
CANADIAN_TOWNS = _towns("""
Toronto|ON|M; Ottawa|ON|K; Hamilton|ON|L; London|ON|N; Montréal|QC|H; Québec|QC|G; Vancouver|BC|V;
Victoria|BC|V; Calgary|AB|T; Edmonton|AB|T; Winnipeg|MB|R; Halifax|NS|B; Regina|SK|S;
Saskatoon|SK|S; Fredericton|NB|E; St. John's|NL|A
""")
AUSTRALIAN_TOWNS = _towns("""
Sydney|NSW|20; Newcastle|NSW|23; Wollongong|NSW|25; Melbourne|VIC|30; Geelong|VIC|32;
Ballarat|VIC|33; Brisbane|QLD|40; Cairns|QLD|48; Perth|WA|60; Fremantle|WA|61; Adelaide|SA|50;
Hobart|TAS|70; Canberra|ACT|26; Alice Springs|NT|08
""")
SPANISH_TOWNS = _towns("""
Madrid||28; Barcelona||08; Valencia||46; Sevilla||41; Zaragoza||50; Málaga||29; Bilbao|Vizcaya|48;
Granada||18; Salamanca||37; Palma de Mallorca||07; Santiago de Compostela|La Coruña|15; Toledo||45
""")
ITALIAN_TOWNS = _towns("""
Roma|RM|00; Milano|MI|20; Torino|TO|10; Napoli|NA|80; Bologna|BO|40; Firenze|FI|50; Venezia|VE|30;
Verona|VR|37; Palermo|PA|90; Genova|GE|16; Bari|BA|70; Reggio Emilia|RE|42
""")
DUTCH_TOWNS = _towns("""
Amsterdam||10; Rotterdam||30; Utrecht||35; Den Haag||25; Eindhoven||56; Groningen||97; Leiden||23;
Delft||26; Nijmegen||65; Maastricht||62; Haarlem||20; 's-Hertogenbosch||52
""")

STATE_NAMES = {
    "NY": "New York",
    "CA": "California",
    "TX": "Texas",
    "WA": "Washington",
    "NC": "North Carolina",
    "MA": "Massachusetts",
    "OR": "Oregon",
    "OH": "Ohio",
    "GA": "Georgia",
    "VA": "Virginia",
    "NM": "New Mexico",
    "FL": "Florida",
}

FIRST_NAMES = _words("""
Ada; Alan; Amelia; Anna; Arthur; Beatrice; Carlos; Chen; Claire; Daniel; David; Elena; Emma; Fatima;
Felix; Florence; George; Grace; Hannah; Henry; Hiroshi; Ingrid; Isabel; Jack; Jonas; Julia; Karl;
Katrin; Lena; Louis; Lucia; Madison; Marco; Maria; Martin; Mehmet; Nina; Olga; Oliver; Paul; Pierre;
Priya; Rosa; Samuel; Sofia; Thomas; Victoria; Virginia; Wei; Yusuf
""")
LAST_NAMES = _words("""
Adams; Allen; Baker; Becker; Bernard; Brown; Campbell; Chapman; Chen; Cooper; Dubois; Evans;
Fischer; Garcia; Green; Haas; Hall; Hughes; Ivanov; Jackson; Jansen; Jones; Kaya; Kim; King;
Klein; Lambert; Lane; Lee; Lincoln; Lopez; Mason; Meyer; Moore; Moretti; Nguyen; O'Brien; Park;
Patel; Petit; Rossi; Rivers; Schmidt; Silva; Singh; Smith; Stone; Taylor; Walker; Weber; West;
Wood; York; Young
""")
FIRM_NAMES = _words("""
Blue Heron; Northgate; Harbor; Riverside; Summit; Acorn; Lighthouse; Silver Birch; Red Barn;
Old Town; Green Street; Meridian; Atlas; Union; Park Lane; Golden Gate; Four Winds; Stonebridge
""")
FIRM_KINDS = _words("""
Books; Bakery; Dental; Motors; Consulting; Hardware; Pharmacy; Media; Logistics; Flowers; Systems;
Garden Centre; Tea Company; Cycles; Insurance; Architects; Coffee; Tools
""")
BUILDINGS = _words("""
Rose Cottage; The Old Rectory; Ivy House; Mill House; Kings Court; Albion House; Orchard Lodge;
Queens Tower; The Gables; Wharf Building; Riverside House; Park View
""")
